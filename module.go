// Copyright 2026 The Caddy Code Interpreter Authors
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

// Package codeinterpreter makes OpenAI's code_interpreter tool work with any
// OpenAI-compatible upstream behind Caddy: the model's Python runs in a
// sandbox, and the upstream never learns that the tool is not its own.
package codeinterpreter

import (
	"math"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

func init() {
	caddy.RegisterModule(new(CodeInterpreter))
}

// CodeInterpreter is a middleware handler that gives the code_interpreter tool
// to OpenAI-compatible upstreams that do not have it.
//
// A chat request (a POST with a JSON body to a path that ends in
// `/chat/completions`) whose `tools` contain `{"type": "code_interpreter"}`
// goes upstream with an ordinary function tool in its place. The code that the
// model asks for runs in a sandbox, its result goes back to the model, and so
// on until the model answers. Requests with the same `metadata.session_id` of
// the same caller share a sandbox with its variables and files; without one a
// request has a sandbox of its own, which ends with it. Every other request
// passes through unchanged, but for `metadata.session_id`, which no upstream
// gets to see.
//
// The handler belongs behind authentication and in front of `reverse_proxy`;
// the Caddyfile directive is placed there by itself.
//
// Handlers whose sandboxes are the same share them with their sessions, across
// reloads too; timeouts and numbers of sandboxes are then those of the handler
// that was loaded last. A change to `sandbox` or `max_read` begins with new
// sandboxes, while requests that are under way finish in the old ones.
//
// In the Caddyfile the values of `api_key`, `secret` and other strings of a
// sandbox may be placeholders. Write `{env.E2B_API_KEY}` or
// `{file./run/secrets/e2b}`: they are resolved when the configuration is
// loaded and stay out of it, while `{$E2B_API_KEY}` would be copied into it.
type CodeInterpreter struct {
	// Where the code runs. Default: E2B when the environment variable
	// `E2B_API_KEY` is set, else sandboxes on this machine.
	Sandbox *Sandbox `json:"sandbox,omitempty"`

	// Which requests share a sandbox, for how long, and how many there may be.
	Sessions *Sessions `json:"sessions,omitempty"`

	// Which requests get the tool. With `requested` those whose `tools`
	// contain it. With `always` every chat request, except one with a JSON
	// `response_format`, `"tool_choice": "none"`, `n` above 1 or the legacy
	// `functions`. Default: `requested`.
	Offer string `json:"offer,omitempty"`

	// The name of the function tool that the upstream sees: 1 to 64 letters,
	// digits, `_` and `-`. A tool of the client with that name makes ours take
	// another one for the request. Default: `run_python`.
	ToolName string `json:"tool_name,omitempty"`

	// How many rounds of code one request may run. The model then has to
	// answer without the tool. At least 1. Default: 16.
	MaxRounds int `json:"max_rounds,omitempty"`

	// How long one execution may take. The code is then interrupted and the
	// model told; the session lives on. No longer than `request_timeout`.
	// Default: 60s, or `request_timeout` when that is shorter.
	ExecTimeout caddy.Duration `json:"exec_timeout,omitempty"`

	// How long getting a sandbox (creating, finding or resuming it) may take.
	// The model is then told that no code can run. Default: 30s.
	SandboxTimeout caddy.Duration `json:"sandbox_timeout,omitempty"`

	// How long an execution waits while its session runs another one, or while
	// `sessions.max` sandboxes exist. The model is then told that the sandbox
	// is busy. Default: 60s.
	QueueTimeout caddy.Duration `json:"queue_timeout,omitempty"`

	// How long the whole exchange may take, with all turns of the model and all
	// executions. Default: 10m.
	RequestTimeout caddy.Duration `json:"request_timeout,omitempty"`

	// How many characters of an execution's output the model gets; of a longer
	// one it gets the head, the tail and how much is missing in between.
	// In the Caddyfile a number or a size such as `32KiB`. Default: 32768.
	MaxOutput int64 `json:"max_output,omitempty"`

	// The largest request body in bytes; a larger one is answered with 413.
	// Default: 67108864 (64 MiB).
	MaxBody int64 `json:"max_body,omitempty"`

	// How many bytes of an execution's answer are read from a sandbox. The run
	// is then stopped and the model told. Default: 16777216 (16 MiB).
	MaxRead int64 `json:"max_read,omitempty"`

	// How many bytes of images and charts a response carries in
	// `executed_tools`; what does not fit is named, not sent. 0 sends none.
	// Default: 8388608 (8 MiB).
	MaxImages *int64 `json:"max_images,omitempty"`

	// Whether code and output appear in debug logs. They are data of users.
	// Default: false.
	LogCode bool `json:"log_code,omitempty"`

	// How often a streamed response carries a comment line while the model or
	// the sandbox is silent, so that nothing in between gives the connection
	// up. At least 100ms. Default: 10s.
	Keepalive caddy.Duration `json:"keepalive,omitempty"`

	// Whether responses show the client what was executed, in the field
	// `executed_tools` of a message or delta. Default: true.
	Show *bool `json:"show,omitempty"`

	handler *handler.Handler
	lease   *lease
}

const moduleID = "http.handlers.code_interpreter"

// CaddyModule returns the Caddy module information.
func (*CodeInterpreter) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  moduleID,
		New: func() caddy.Module { return new(CodeInterpreter) },
	}
}

// Provision checks the configuration and sets up the handler. It makes no
// connection; local sandboxes are tried out if no earlier configuration has
// done so. Everything is checked here and not in a Validate of its own, which
// Caddy would call when the sandboxes have been started already.
func (c *CodeInterpreter) Provision(ctx caddy.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	spec, err := c.backend()
	if err != nil {
		return err
	}
	limits, err := c.limits(spec)
	if err != nil {
		return err
	}
	if err := registerMetrics(ctx.GetMetricsRegistry()); err != nil {
		return err
	}
	announcer, err := newAnnouncer(ctx)
	if err != nil {
		return err
	}
	logger := ctx.Logger()
	c.lease, err = acquire(ctx, spec, share{limits: limits, logger: logger, announcer: announcer, storage: c.storage(ctx)})
	if err != nil {
		return err
	}
	config := c.handlerConfig()
	config.Pool, config.Metrics, config.Logger = c.lease.backend.pool, metrics, logger
	c.handler = handler.New(config)
	return nil
}

// storage returns what gateways agree in, nil when they do not share sessions.
func (c *CodeInterpreter) storage(ctx caddy.Context) session.Storage {
	if c.Sessions == nil || !c.Sessions.Shared {
		return nil
	}
	return ctx.Storage()
}

// handlerConfig returns what the handler needs, defaults filled in.
func (c *CodeInterpreter) handlerConfig() handler.Config {
	config := handler.Config{
		Offer:          handler.OfferRequested,
		ToolName:       or(c.ToolName, defaultToolName),
		MaxRounds:      or(c.MaxRounds, defaultMaxRounds),
		RequestTimeout: c.requestTimeout(),
		Keepalive:      orDuration(c.Keepalive, defaultKeepalive),
		MaxOutput:      int(min(or(c.MaxOutput, defaultMaxOutput), math.MaxInt32)),
		MaxBody:        or(c.MaxBody, defaultMaxBody),
		MaxImages:      orSet(c.MaxImages, defaultMaxImages),
		Show:           orSet(c.Show, defaultShow),
		LogCode:        c.LogCode,
	}
	if or(c.Offer, defaultOffer) == offerAlways {
		config.Offer = handler.OfferAlways
	}
	if c.Sessions != nil {
		config.Identity, config.SessionID = c.Sessions.Identity, c.Sessions.ID
	}
	return config
}

// Cleanup gives the sandboxes back. They end when no other configuration uses
// them, those of requests that are under way when these have ended.
func (c *CodeInterpreter) Cleanup() error {
	if c.lease == nil {
		return nil // Provision has failed before
	}
	return c.lease.release()
}

// ServeHTTP runs the tool of a chat request and passes every other request on.
func (c *CodeInterpreter) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	c.lease.backend.enter()
	defer c.lease.backend.leave()
	return c.handler.ServeHTTP(w, r, next)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*CodeInterpreter)(nil)
	_ caddy.CleanerUpper          = (*CodeInterpreter)(nil)
	_ caddyhttp.MiddlewareHandler = (*CodeInterpreter)(nil)
)
