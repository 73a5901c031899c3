module github.com/caddy-code-interpreter/caddy-code-interpreter/caddytest/e2bsdk

go 1.26.0

require (
	github.com/caddy-code-interpreter/caddy-code-interpreter v0.0.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/elastic/go-seccomp-bpf v1.6.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.uber.org/zap v1.28.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace github.com/caddy-code-interpreter/caddy-code-interpreter => ../..
