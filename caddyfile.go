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

package codeinterpreter

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

func init() {
	httpcaddyfile.RegisterHandlerDirective("code_interpreter", parseCaddyfile)
	// After authentication and compression, so that callers are known and
	// answers are not compressed yet; before everything that may hold the
	// proxy: handle, handle_path, route and reverse_proxy itself.
	httpcaddyfile.RegisterDirectiveOrder("code_interpreter", httpcaddyfile.Before, "invoke")
}

func parseCaddyfile(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	c := new(CodeInterpreter)
	err := c.UnmarshalCaddyfile(h.Dispenser)
	return c, err
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Everything may
// be left out, and nothing may be given twice. Syntax:
//
//	code_interpreter [<matcher>] {
//	    sandbox e2b {
//	        api_key     <key>
//	        api_url     <url>
//	        domain      <host[:port]>
//	        sandbox_url <url|template>
//	        template    <name>
//	        internet    on|off
//	        secret      <secret>
//	    }
//	    sandbox local {
//	        python    <path>
//	        memory    <size>
//	        processes <number>
//	        disk      <size>
//	        warm      <number>
//	        preload   <modules...>
//	    }
//	    sessions {
//	        idle             <duration>
//	        max_per_identity <number>
//	        max              <number>
//	        identity         <placeholder>
//	        id               <placeholder>
//	        on_exit          keep|delete
//	        shared
//	        on_idle          delete|pause
//	        keep             <duration>
//	        create_rate      <number>/<duration>
//	    }
//	    offer           requested|always
//	    tool_name       <name>
//	    max_rounds      <number>
//	    exec_timeout    <duration>
//	    sandbox_timeout <duration>
//	    queue_timeout   <duration>
//	    request_timeout <duration>
//	    max_output      <size>
//	    max_body        <size>
//	    max_read        <size>
//	    max_images      <size>
//	    log_code        on|off
//	    keepalive       <duration>
//	    show            on|off
//	}
//
// There is one sandbox, either e2b or local; its block may be left out.
func (c *CodeInterpreter) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	if d.NextArg() {
		return d.Errf("code_interpreter: unexpected argument '%s': options stand in a block, each in a line of its own", d.Val())
	}
	return readBlock(d, "code_interpreter", options{
		"sandbox":         c.readSandbox,
		"sessions":        c.readSessions,
		"offer":           one("requested|always", text(&c.Offer, oneOf(offerRequested, offerAlways))),
		"tool_name":       one("<name>", text(&c.ToolName, validToolName)),
		"max_rounds":      one("<number>", number(&c.MaxRounds, atLeast(1))),
		"exec_timeout":    one("<duration>", duration(&c.ExecTimeout, positive)),
		"sandbox_timeout": one("<duration>", duration(&c.SandboxTimeout, positive)),
		"queue_timeout":   one("<duration>", duration(&c.QueueTimeout, positive)),
		"request_timeout": one("<duration>", duration(&c.RequestTimeout, positive)),
		"max_output":      one("<size>", size(&c.MaxOutput, atLeast[int64](1))),
		"max_body":        one("<size>", size(&c.MaxBody, atLeast[int64](1))),
		"max_read":        one("<size>", size(&c.MaxRead, atLeast[int64](1))),
		"max_images":      one("<size>", optional(&c.MaxImages, func(v *int64) setter { return size(v, atLeast[int64](0)) })),
		"log_code":        one("on|off", toggle(&c.LogCode)),
		"keepalive":       one("<duration>", duration(&c.Keepalive, atLeast(minKeepalive))),
		"show":            one("on|off", optional(&c.Show, toggle)),
	})
}

func (c *CodeInterpreter) readSandbox(d *caddyfile.Dispenser) error {
	var engine string
	if err := readArg(d, "e2b|local", text(&engine, oneOf(engineE2B, engineLocal))); err != nil {
		return err
	}
	c.Sandbox = new(Sandbox)
	if engine == engineLocal {
		c.Sandbox.Local = new(Local)
		return c.Sandbox.Local.readBlock(d)
	}
	c.Sandbox.E2B = new(E2B)
	return c.Sandbox.E2B.readBlock(d)
}

func (e *E2B) readBlock(d *caddyfile.Dispenser) error {
	return readBlock(d, "sandbox e2b", options{
		"api_key":     one("<key>", secret(&e.APIKey, validKey)),
		"api_url":     one("<url>", address(&e.APIURL, func(v string) e2b.Config { return e2b.Config{APIURL: v} })),
		"domain":      one("<host[:port]>", address(&e.Domain, func(v string) e2b.Config { return e2b.Config{Domain: v} })),
		"sandbox_url": one("<url|template>", address(&e.SandboxURL, func(v string) e2b.Config { return e2b.Config{SandboxURL: v} })),
		"template":    one("<name>", text(&e.Template, unlessPlaceholder(validTemplate))),
		"internet":    one("on|off", optional(&e.Internet, toggle)),
		"secret":      one("<secret>", secret(&e.Secret, validSecret)),
	})
}

func (l *Local) readBlock(d *caddyfile.Dispenser) error {
	return readBlock(d, "sandbox local", options{
		"python":    one("<path>", text(&l.Python, anything)),
		"memory":    one("<size>", size(&l.Memory, atLeastBytes(minMemory))),
		"processes": one("<number>", number(&l.Processes, atLeast(minProcesses))),
		"disk":      one("<size>", size(&l.Disk, atLeastBytes(minDisk))),
		"warm":      one("<number>", optional(&l.Warm, func(v *int) setter { return number(v, atLeast(0)) })),
		"preload":   several("<modules...>", words(&l.Preload, validModule)),
	})
}

func (c *CodeInterpreter) readSessions(d *caddyfile.Dispenser) error {
	if d.NextArg() {
		return d.Errf("sessions: unexpected argument '%s': options stand in a block, each in a line of its own", d.Val())
	}
	c.Sessions = new(Sessions)
	s := c.Sessions
	return readBlock(d, "sessions", options{
		"idle":             one("<duration>", duration(&s.Idle, atLeast(minIdle))),
		"max_per_identity": one("<number>", number(&s.MaxPerIdentity, atLeast(1))),
		"max":              one("<number>", number(&s.Max, atLeast(1))),
		"identity":         one("<placeholder>", text(&s.Identity, validIdentity)),
		"id":               one("<placeholder>", text(&s.ID, validSessionID)),
		"on_exit":          one("keep|delete", text(&s.OnExit, oneOf(onExitKeep, onExitDelete))),
		"shared":           present(&s.Shared),
		"on_idle":          one("delete|pause", text(&s.OnIdle, oneOf(onIdleDelete, onIdlePause))),
		"keep":             one("<duration>", duration(&s.Keep, atLeast(minKeep))),
		"create_rate":      one("<number>/<duration>", text(&s.CreateRate, validRate)),
	})
}

// Interface guard
var _ caddyfile.Unmarshaler = (*CodeInterpreter)(nil)
