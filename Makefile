# make run    a gateway on 127.0.0.1:4000 in front of UPSTREAM, or of the scripted model
# make test   all tests, with the race detector
#
# Go 1.26, bash and curl have to be there. What else is missing is installed with
# apt where that is allowed, else named.

FUZZTIME ?= 1m
WIRECHECK ?= ../shared/wire
RELEASE ?= trixie

export FUZZTIME WIRECHECK

.PHONY: help
help:
	@echo 'make run               gateway on LISTEN (default 127.0.0.1:4000) with the embedded sandbox, in front of'
	@echo '                       UPSTREAM (any OpenAI-compatible base URL; without it the scripted model)'
	@echo 'make test              all tests, with the race detector'
	@echo 'make test-debian       the tests of the embedded sandbox with Debian RELEASE (default trixie), which is fetched'
	@echo 'make build             bin/caddy and bin/scriptedmodel'
	@echo 'make lint              formatting, go vet and golangci-lint'
	@echo 'make qa                five checks of a running gateway; takes BASE_URL, API_KEY and MODEL'
	@echo 'make fuzz FUZZTIME=1m  each fuzz target for that time'
	@echo 'make bench             Go benchmarks, then the five minutes of the measuring harness that CI runs'
	@echo 'make bench-table       the whole table of docs/PERFORMANCE.md, in half an hour'
	@echo 'make bench-soak        ten minutes of load, for the memory'
	@echo 'make soak-reload       200 reloads with changed limits, upstreams and handlers while a session and a stream are used'
	@echo 'make soak-shared       2,000 requests over 100 sessions at two gateways that share them, one of which is killed'
	@echo 'make wire              black-box cases of WIRECHECK (default $(WIRECHECK))'
	@echo 'make wire-cuts         the same with upstream bytes in pieces, three rounds'
	@echo 'make xcaddy            build with xcaddy and check Caddyfile.example'
	@echo 'make clean             remove what was built'

.PHONY: run
run:
	@scripts/run.sh

.PHONY: test
test:
	@scripts/test.sh

.PHONY: test-debian
test-debian:
	@scripts/test-debian.sh $(RELEASE)

.PHONY: build
build:
	@scripts/build.sh

.PHONY: lint
lint:
	@scripts/lint.sh

.PHONY: qa
qa:
	@caddytest/qa.sh

.PHONY: fuzz
fuzz:
	@scripts/fuzz.sh

.PHONY: bench
bench:
	go test -run '^$$' -bench . -benchmem ./...
	go test -C handler/internal/wire/peers -run '^$$' -bench . -benchmem .
	go run -C bench . ci

.PHONY: bench-table
bench-table:
	go run -C bench . table

.PHONY: bench-soak
bench-soak:
	go run -C bench . soak

.PHONY: soak-reload
soak-reload:
	RELOADS=200 go test -race -count=1 -timeout 30m -run TestReloadKeepsSessionsAndStreams -v ./caddytest

.PHONY: soak-shared
soak-shared:
	SOAK_SHARED=1 go test -race -count=1 -timeout 30m -run 'TestGatewaysShare' -v ./caddytest
	SOAK_SHARED=1 go test -C caddytest/redis -race -count=1 -timeout 30m -run 'TestGatewaysShare' -v .

.PHONY: wire
wire:
	@scripts/wire.sh plain

.PHONY: wire-cuts
wire-cuts:
	@scripts/wire.sh cuts

.PHONY: xcaddy
xcaddy:
	@scripts/xcaddy.sh

.PHONY: clean
clean:
	rm -rf bin caddytest/*/npm/node_modules
