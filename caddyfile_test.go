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
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

const atTestfile = ", at Testfile:"

// TestUnmarshalCaddyfileRefuses holds every refusal to naming the option, what
// is wrong with it, the mend, the file and the line.
func TestUnmarshalCaddyfileRefuses(t *testing.T) {
	for _, tc := range []struct{ name, block, want string }{
		{"inline argument", "code_interpreter on", "code_interpreter: unexpected argument 'on': options stand in a block, each in a line of its own, at Testfile:1"},
		{"unknown option", "code_interpreter {\n timeout 3s\n}", "code_interpreter: unrecognized option 'timeout': the options are exec_timeout, keepalive, "},
		{"unknown option of e2b", "code_interpreter {\n sandbox e2b {\n  key x\n }\n}", "sandbox e2b: unrecognized option 'key': the options are api_key, api_url, domain, internet, sandbox_url, secret, template, at Testfile:3"},
		{"unknown option of local", "code_interpreter {\n sandbox local {\n  internet on\n }\n}", "sandbox local: unrecognized option 'internet': the options are disk, memory, preload, processes, python, warm, at Testfile:3"},
		{"unknown option of sessions", "code_interpreter {\n sessions {\n  ttl 3s\n }\n}", "sessions: unrecognized option 'ttl': the options are create_rate, id, identity, idle, keep, max, max_per_identity, on_exit, on_idle, shared, at Testfile:3"},
		{"flag with an argument", "code_interpreter {\n sessions {\n  shared on\n }\n}", "shared: unexpected argument 'on': write shared alone, or remove the line, at Testfile:3"},
		{"flag with a block", "code_interpreter {\n sessions {\n  shared {\n   x\n  }\n }\n}", "shared takes no block: write shared alone, at Testfile:4"},
		{"unknown word of on_idle", "code_interpreter {\n sessions {\n  on_idle keep\n }\n}", `on_idle "keep": must be delete or pause, at Testfile:3`},
		{"short keep", "code_interpreter {\n sessions {\n  keep 1s\n }\n}", "keep 1s: must be at least 1m0s, at Testfile:3"},
		{"no rate", "code_interpreter {\n sessions {\n  create_rate 5\n }\n}", `create_rate "5": must be a number and a time, like 5/s or 100/1h, at Testfile:3`},
		{"option given twice", "code_interpreter {\n max_rounds 3\n show on\n max_rounds 4\n}", "code_interpreter: max_rounds is already given in line 2: remove one of the two, at Testfile:4"},
		{"block given twice", "code_interpreter {\n sessions {\n }\n sessions {\n }\n}", "code_interpreter: sessions is already given in line 2: remove one of the two, at Testfile:4"},
		{"sandbox given twice", "code_interpreter {\n sandbox local\n sandbox e2b\n}", "code_interpreter: sandbox is already given in line 2: remove one of the two, at Testfile:3"},
		{"option given twice in a block", "code_interpreter {\n sandbox e2b {\n  template a\n  template a\n }\n}", "sandbox e2b: template is already given in line 3: remove one of the two, at Testfile:4"},
		{"value missing", "code_interpreter {\n exec_timeout\n}", "exec_timeout: the value is missing: write exec_timeout <duration>, at Testfile:2"},
		{"engine missing", "code_interpreter {\n sandbox {\n }\n}", "sandbox: the value is missing: write sandbox e2b|local, at Testfile:2"},
		{"values missing", "code_interpreter {\n sandbox local {\n  preload\n }\n}", "preload: the values are missing: write preload <modules...>, at Testfile:3"},
		{"value empty", "code_interpreter {\n tool_name \"\"\n}", "tool_name is empty: give a value, or remove the line, at Testfile:2"},
		{"URL empty", "code_interpreter {\n sandbox e2b {\n  api_url \"\"\n }\n}", "api_url is empty: give a value, or remove the line, at Testfile:3"},
		{"further argument", "code_interpreter {\n max_body 5 MB\n}", "max_body: unexpected further argument: write max_body <size>, with quotes around a value that contains spaces, at Testfile:2"},
		{"further argument of a sandbox", "code_interpreter {\n sandbox e2b local\n}", "sandbox: unexpected further argument: write sandbox e2b|local"},
		{"argument of sessions", "code_interpreter {\n sessions 15m\n}", "sessions: unexpected argument '15m': options stand in a block, each in a line of its own, at Testfile:2"},
		{"block of an option", "code_interpreter {\n keepalive 5s {\n  x\n }\n}", "keepalive takes no block: write keepalive <duration>, at Testfile:3"},
		{"unknown engine", "code_interpreter {\n sandbox docker\n}", `sandbox "docker": must be e2b or local, at Testfile:2`},
		{"unknown word", "code_interpreter {\n offer never\n}", `offer "never": must be requested or always, at Testfile:2`},
		{"unknown word of on_exit", "code_interpreter {\n sessions {\n  on_exit pause\n }\n}", `on_exit "pause": must be keep or delete, at Testfile:3`},
		{"no switch", "code_interpreter {\n show yes\n}", `show "yes": must be on or off, at Testfile:2`},
		{"no duration", "code_interpreter {\n exec_timeout 60\n}", `exec_timeout "60": must be a duration like 90s, 15m or 1h, at Testfile:2`},
		{"no time at all", "code_interpreter {\n queue_timeout 0s\n}", "queue_timeout 0s: must be longer than 0, like 30s, at Testfile:2"},
		{"negative time", "code_interpreter {\n request_timeout -1m\n}", "request_timeout -1m0s: must be longer than 0, like 30s, at Testfile:2"},
		{"short keep-alive", "code_interpreter {\n keepalive 1ms\n}", "keepalive 1ms: must be at least 100ms, at Testfile:2"},
		{"short idle", "code_interpreter {\n sessions {\n  idle 10ms\n }\n}", "idle 10ms: must be at least 1s, at Testfile:3"},
		{"no number", "code_interpreter {\n max_rounds many\n}", `max_rounds "many": must be a whole number, at Testfile:2`},
		{"number too small", "code_interpreter {\n max_rounds 0\n}", "max_rounds 0: must be at least 1, at Testfile:2"},
		{"negative number", "code_interpreter {\n sandbox local {\n  warm -1\n }\n}", "warm -1: must be at least 0, at Testfile:3"},
		{"no sessions at all", "code_interpreter {\n sessions {\n  max_per_identity 0\n }\n}", "max_per_identity 0: must be at least 1, at Testfile:3"},
		{"no size", "code_interpreter {\n max_read lots\n}", `max_read "lots": must be a size like 512KiB, 64MiB or 1GiB, at Testfile:2`},
		{"negative size", "code_interpreter {\n max_images -1\n}", `max_images "-1": must be a size like 512KiB, 64MiB or 1GiB, at Testfile:2`},
		{"size beyond numbers", "code_interpreter {\n max_body 16EiB\n}", `max_body "16EiB": must be a size like 512KiB, 64MiB or 1GiB, at Testfile:2`},
		{"size too small", "code_interpreter {\n max_output 0\n}", "max_output 0: must be at least 1, at Testfile:2"},
		{"memory too small", "code_interpreter {\n sandbox local {\n  memory 1MiB\n }\n}", "memory 1MiB: must be at least 64 MiB, at Testfile:3"},
		{"disk too small", "code_interpreter {\n sandbox local {\n  disk 1KiB\n }\n}", "disk 1KiB: must be at least 1 MiB, at Testfile:3"},
		{"tool name", "code_interpreter {\n tool_name run.python\n}", `tool_name "run.python": must be 1 to 64 letters, digits, _ and -`},
		{"module name", "code_interpreter {\n sandbox local {\n  preload numpy os;print\n }\n}", `preload "os;print": must be the name of a Python module, like numpy, at Testfile:3`},
		{"module given twice", "code_interpreter {\n sandbox local {\n  preload numpy os numpy\n }\n}", `preload "numpy": given twice: remove one, at Testfile:3`},
		{"URL without scheme", "code_interpreter {\n sandbox e2b {\n  api_url api.example.com\n }\n}", `sandbox e2b: api_url: "api.example.com" is not a URL with scheme and host: give one like https://host`},
		{"URL of another scheme", "code_interpreter {\n sandbox e2b {\n  api_url ftp://api.example.com\n }\n}", `sandbox e2b: api_url: "ftp://api.example.com" is not a URL`},
		{"unknown token", "code_interpreter {\n sandbox e2b {\n  sandbox_url https://{sandbox}.example.com\n }\n}", `sandbox e2b: sandbox_url: "{sandbox}" is not a placeholder here: use {port}, {id} and {domain}, at Testfile:3`},
		{"domain with scheme", "code_interpreter {\n sandbox e2b {\n  domain https://example.com\n }\n}", "sandbox e2b: domain: "},
		{"template", "code_interpreter {\n sandbox e2b {\n  template \"my template\"\n }\n}", `template "my template": must be the name or id of a template, without spaces, at Testfile:3`},
		{"constant session id", "code_interpreter {\n sessions {\n  id everyone\n }\n}", `id "everyone": must be one placeholder, like {http.request.header.X-Session-Id}, at Testfile:3`},
		{"constant identity", "code_interpreter {\n sessions {\n  identity everyone\n }\n}", `identity "everyone": must be one placeholder, like {http.auth.user.id}, at Testfile:3`},
		{"identity of the client's choice", "code_interpreter {\n sessions {\n  identity {http.request.header.X-User}\n }\n}", `identity "{http.request.header.X-User}": the client chooses this value and could enter the sessions of others: use {http.auth.user.id}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := new(CodeInterpreter).UnmarshalCaddyfile(caddyfile.NewTestDispenser(tc.block))
			switch {
			case err == nil:
				t.Fatalf("accepted; want an error with %q", tc.want)
			case !strings.Contains(err.Error(), tc.want), !strings.Contains(err.Error(), atTestfile):
				t.Errorf("error %q\nwant     %q with file and line", err, tc.want)
			}
		})
	}
}

// TestUnmarshalCaddyfileHidesSecrets looks for the value of a bad secret.
func TestUnmarshalCaddyfileHidesSecrets(t *testing.T) {
	for _, block := range []string{
		"code_interpreter {\n sandbox e2b {\n  api_key \"hush hush\"\n }\n}",
		"code_interpreter {\n sandbox e2b {\n  api_key hush -hush\n }\n}",
		"code_interpreter {\n sandbox e2b {\n  secret hush\n }\n}",
		"code_interpreter {\n sandbox e2b {\n  secret hush -hush\n }\n}",
		"code_interpreter {\n sandbox e2b {\n  api_url https://me:hush@example.com\n }\n}",
	} {
		err := new(CodeInterpreter).UnmarshalCaddyfile(caddyfile.NewTestDispenser(block))
		if err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: error %v", block, err)
		}
	}
}

func TestParseRate(t *testing.T) {
	for rate, want := range map[string]time.Duration{
		"1/s": time.Second, "5/s": 200 * time.Millisecond, "100/1h": 36 * time.Second, "1/1d": 24 * time.Hour, "60/m": time.Second,
	} {
		if got, err := parseRate(rate); got != want || err != nil {
			t.Errorf("%s: %v, %v; want %v", rate, got, err, want)
		}
	}
	for _, rate := range []string{"", "/", "5", "5/", "/s", "0/s", "-1/s", "1/0s", "1/-1s", "1.5/s", "a/s", "1/s/s", "2/1ns", "1/x"} {
		if got, err := parseRate(rate); err == nil {
			t.Errorf("%q is accepted as %v", rate, got)
		}
	}
}

// TestIdentityIsNotTheClients lists placeholders by who decides their value.
func TestIdentityIsNotTheClients(t *testing.T) {
	for placeholder, allowed := range map[string]bool{
		"{http.auth.user.id}":                   true,
		"{http.auth.user.email}":                true,
		"{http.vars.client_ip}":                 true,
		"{http.vars.caller}":                    true,
		"{http.request.remote.host}":            true,
		"{http.request.remote}":                 true,
		"{http.request.tls.client.subject}":     true,
		"{http.request.header.X-User}":          false,
		"{http.request.header.Authorization}":   false,
		"{http.request.cookie.user}":            false,
		"{http.request.uri}":                    false,
		"{http.request.uri.query.user}":         false,
		"{http.request.uri.path.0}":             false,
		"{http.request.orig_uri.query}":         false,
		"{http.request.body}":                   false,
		"{http.request.body_base64}":            false,
		"{http.request.host}":                   false,
		"{http.request.host.labels.0}":          false,
		"{http.request.method}":                 false,
		"{http.request.uuid}":                   false,
		"{http.request.tls.server_name}":        false,
		"{http.request.remote_user}":            false,
		"{http.regexp.name.1}":                  false,
		"{http.matchers.file.relative}":         false,
		"{http.matchers.file.remainder}":        false,
		"{file_match.relative}":                 false,
		"{header.X-User}":                       false,
		"{cookie.user}":                         false,
		"{query.user}":                          false,
		"{path}":                                false,
		"{re.name.1}":                           false,
		"alice":                                 false,
		"":                                      false,
		"{}":                                    false,
		"user-{http.auth.user.id}":              false,
		"{http.auth.user.id}{http.vars.caller}": false,
	} {
		if err := validIdentity(placeholder); (err == nil) != allowed {
			t.Errorf("identity %q: error %v, allowed should be %t", placeholder, err, allowed)
		}
	}
}

// FuzzUnmarshalCaddyfile holds that no Caddyfile makes the parser panic, and
// that what it accepts is accepted as JSON, but for the sandbox's placeholders
// and limits that depend on each other.
func FuzzUnmarshalCaddyfile(f *testing.F) {
	for _, seed := range []string{
		"code_interpreter",
		"code_interpreter {\n sandbox local {\n  preload numpy pandas\n  memory 1GiB\n }\n}",
		"code_interpreter {\n sandbox e2b {\n  api_key {env.KEY}\n  sandbox_url http://{id}.{domain}\n }\n offer always\n}",
		"code_interpreter {\n sessions {\n  idle 1h\n  id {http.request.header.X-Session-Id}\n }\n max_images 0\n show off\n}",
		"code_interpreter {\n sessions {\n  shared\n  on_idle pause\n  keep 1d\n  create_rate 5/s\n }\n}",
		"code_interpreter {\n max_rounds 3 {\n }\n}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input string) {
		c := new(CodeInterpreter)
		if c.UnmarshalCaddyfile(caddyfile.NewTestDispenser(input)) != nil {
			return
		}
		if err := c.check(); err != nil {
			t.Errorf("accepted by the Caddyfile only: %v", err)
		}
	})
}
