module github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire/peers

go 1.26.0

require (
	github.com/caddy-code-interpreter/caddy-code-interpreter v0.0.0
	github.com/tidwall/gjson v1.20.3
)

require (
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.3.0 // indirect
)

replace github.com/caddy-code-interpreter/caddy-code-interpreter => ../../../..
