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
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/local"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// provision loads a module as Caddy does. What it has acquired is released
// with the returned function, and at the latest when the test ends.
func provision(t *testing.T, config string) (*CodeInterpreter, func(), error) {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	t.Cleanup(func() {
		cancel()
		drains.work.Wait()
	})
	module, err := ctx.LoadModuleByID(moduleID, json.RawMessage(config))
	if err != nil {
		return nil, cancel, err
	}
	return module.(*CodeInterpreter), cancel, nil
}

func mustProvision(t *testing.T, config string) (*CodeInterpreter, func()) {
	t.Helper()
	c, cleanup, err := provision(t, config)
	if err != nil {
		t.Fatal(err)
	}
	return c, cleanup
}

// TestProvisionRefuses holds JSON to the rules of the Caddyfile and both to
// those that need the whole configuration.
func TestProvisionRefuses(t *testing.T) {
	t.Setenv("WITH_SPACE", "e2b hush")
	t.Setenv("EMPTY", "")
	for _, tc := range []struct{ name, config, want string }{
		{"unknown field", `{"timeout": 3}`, `unknown field "timeout"`},
		{"on_idle", `{"sessions": {"on_idle": "keep"}}`, `sessions: on_idle "keep": must be delete or pause`},
		{"keep", `{"sessions": {"keep": "1s"}}`, "sessions: keep 1s: must be at least 1m0s"},
		{"create_rate", `{"sessions": {"create_rate": "many"}}`, `sessions: create_rate "many": must be a number and a time, like 5/s or 100/1h`},
		{"shared local sandboxes", `{"sandbox": {"local": {}}, "sessions": {"shared": true}}`, "sessions: shared: local sandboxes end with their process"},
		{"paused local sandboxes", `{"sandbox": {"local": {}}, "sessions": {"on_idle": "pause"}}`, "sessions: on_idle pause: local sandboxes cannot be paused"},
		{"unknown engine", `{"sandbox": {"docker": {}}}`, `unknown field "docker"`},
		{"two engines", `{"sandbox": {"e2b": {}, "local": {}}}`, "sandbox: both e2b and local are given: remove one of the two"},
		{"offer", `{"offer": "never"}`, `offer "never": must be requested or always`},
		{"tool_name", `{"tool_name": "run python"}`, `tool_name "run python": must be 1 to 64 letters, digits, _ and -`},
		{"tool_name too long", `{"tool_name": "` + strings.Repeat("a", 65) + `"}`, "must be 1 to 64 letters"},
		{"max_rounds", `{"max_rounds": -1}`, "max_rounds -1: must be at least 1"},
		{"exec_timeout", `{"exec_timeout": "-1s"}`, "exec_timeout -1s: must be longer than 0, like 30s"},
		{"sandbox_timeout", `{"sandbox_timeout": -5}`, "sandbox_timeout -5ns: must be longer than 0"},
		{"queue_timeout", `{"queue_timeout": "-1s"}`, "queue_timeout -1s: must be longer than 0"},
		{"request_timeout", `{"request_timeout": "-1s"}`, "request_timeout -1s: must be longer than 0"},
		{"max_output", `{"max_output": -1}`, "max_output -1: must be at least 1"},
		{"max_body", `{"max_body": -1}`, "max_body -1: must be at least 1"},
		{"max_read", `{"max_read": -1}`, "max_read -1: must be at least 1"},
		{"max_images", `{"max_images": -1}`, "max_images -1: must be at least 0"},
		{"keepalive", `{"keepalive": "1ms"}`, "keepalive 1ms: must be at least 100ms"},
		{"idle", `{"sessions": {"idle": "1ms"}}`, "sessions: idle 1ms: must be at least 1s"},
		{"max_per_identity", `{"sessions": {"max_per_identity": -1}}`, "sessions: max_per_identity -1: must be at least 1"},
		{"max", `{"sessions": {"max": -1}}`, "sessions: max -1: must be at least 1"},
		{"identity", `{"sessions": {"identity": "{http.request.header.X-User}"}}`, `sessions: identity "{http.request.header.X-User}": the client chooses this value`},
		{"id", `{"sessions": {"id": "everyone"}}`, `sessions: id "everyone": must be one placeholder`},
		{"on_exit", `{"sessions": {"on_exit": "pause"}}`, `sessions: on_exit "pause": must be keep or delete`},
		{"memory", `{"sandbox": {"local": {"memory": 1}}}`, "sandbox local: memory 1: must be at least 64 MiB"},
		{"processes", `{"sandbox": {"local": {"processes": 1}}}`, "sandbox local: processes 1: must be at least 4"},
		{"disk", `{"sandbox": {"local": {"disk": 1}}}`, "sandbox local: disk 1: must be at least 1 MiB"},
		{"warm", `{"sandbox": {"local": {"warm": -1}}}`, "sandbox local: warm -1: must be at least 0"},
		{"warm above the cap", `{"sandbox": {"local": {"warm": 5}}, "sessions": {"max": 4}}`, "sandbox local: warm 5: must not be more than sessions max, which is 4: lower it, or raise sessions max"},
		{"preload", `{"sandbox": {"local": {"preload": ["os; evil()"]}}}`, `sandbox local: preload "os; evil()": must be the name of a Python module`},
		{"preload empty", `{"sandbox": {"local": {"preload": [""]}}}`, `sandbox local: preload "": must be the name of a Python module`},
		{"python", `{"sandbox": {"local": {"python": "/nowhere/python3"}}}`, "sandbox local: "},
		{"execution longer than its request", `{"exec_timeout": "20m", "sandbox": {"local": {}}}`, "exec_timeout 20m0s: must not be longer than request_timeout, which is 10m0s: shorten it, or raise request_timeout"},
		{"no key", `{"sandbox": {"e2b": {}}}`, "sandbox e2b: api_key: E2B needs one: set the environment variable E2B_API_KEY or the option"},
		{"no key for a region", `{"sandbox": {"e2b": {"api_url": "https://api.eu.e2b.dev/"}}}`, "sandbox e2b: api_key: E2B needs one"},
		{"key from an empty variable", `{"sandbox": {"e2b": {"api_key": "{env.EMPTY}"}}}`, "sandbox e2b: api_key: evaluated placeholder {env.EMPTY} is empty: set the variable or write the file"},
		{"key from a missing file", `{"sandbox": {"e2b": {"api_key": "{file./nowhere/key}"}}}`, "sandbox e2b: api_key: evaluated placeholder {file./nowhere/key} is empty"},
		{"key from nowhere", `{"sandbox": {"e2b": {"api_key": "{http.request.header.Key}"}}}`, "sandbox e2b: api_key: contains a placeholder that means nothing here: use {env.NAME} or {file./path}"},
		{"key with a space", `{"sandbox": {"e2b": {"api_key": "{env.WITH_SPACE}"}}}`, "sandbox e2b: api_key: contains a space"},
		{"short secret", `{"sandbox": {"e2b": {"api_key": "k", "secret": "short"}}}`, "sandbox e2b: secret: must have at least 16 bytes: make one with openssl rand -hex 32"},
		{"api_url", `{"sandbox": {"e2b": {"api_key": "k", "api_url": "example.com"}}}`, `sandbox e2b: api_url: "example.com" is not a URL`},
		{"sandbox_url", `{"sandbox": {"e2b": {"api_key": "k", "sandbox_url": "ftp://{id}.example.com"}}}`, "sandbox e2b: sandbox_url: "},
		{"token of sandbox_url", `{"sandbox": {"e2b": {"api_key": "k", "sandbox_url": "http://{sandbox}.example.com"}}}`, "sandbox e2b: sandbox_url: contains a placeholder that means nothing here"},
		{"domain", `{"sandbox": {"e2b": {"api_key": "k", "domain": "https://example.com", "api_url": "http://a.example"}}}`, "sandbox e2b: domain: "},
		{"template", `{"sandbox": {"e2b": {"api_key": "k", "template": "my template"}}}`, `sandbox e2b: template "my template": must be the name or id of a template`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := provision(t, tc.config)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v\nwant  %s", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "hush") {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
	backends.Range(func(_, _ any) bool {
		t.Error("a refused configuration has left a backend behind")
		return false
	})
}

// TestDefaults holds the defaults to the documentation of the fields.
func TestDefaults(t *testing.T) {
	c := new(CodeInterpreter)
	spec, err := c.backend()
	if err != nil {
		t.Fatal(err)
	}
	if spec.e2b != nil || spec.local == nil {
		t.Error("without a key in the environment the default is not local")
	}
	t.Setenv(envAPIKey, "e2b_key\n")
	spec, err = c.backend()
	if err != nil {
		t.Fatal(err)
	}
	if spec.local != nil || *spec.e2b != (e2bSpec{
		apiKey: "e2b_key", apiURL: e2b.DefaultAPIURL, domain: e2b.DefaultDomain, template: e2b.DefaultTemplate,
		internet: true, maxRead: 16 << 20,
	}) {
		t.Error("with a key in the environment the default is not E2B's cloud with it")
	}
	limits, err := c.limits(spec)
	if err != nil {
		t.Fatal(err)
	}
	if want := (session.Limits{
		Idle: 15 * time.Minute, ExecTimeout: time.Minute, SandboxTimeout: 30 * time.Second, QueueTimeout: time.Minute,
		MaxPerIdentity: 10, Max: 1000, Keep: 7 * 24 * time.Hour,
	}); limits != want {
		t.Errorf("limits %+v, want %+v", limits, want)
	}
	if got, want := c.handlerConfig(), (handler.Config{
		Offer: handler.OfferRequested, ToolName: "run_python", MaxRounds: 16, RequestTimeout: 10 * time.Minute,
		Keepalive: 10 * time.Second, MaxOutput: 32 << 10, MaxBody: 64 << 20, MaxImages: 8 << 20, Show: true,
	}); got != want {
		t.Errorf("handler %+v, want %+v", got, want)
	}
}

func TestDefaultsOfLocal(t *testing.T) {
	c := &CodeInterpreter{Sandbox: &Sandbox{Local: new(Local)}}
	spec, err := c.backend()
	if err != nil {
		t.Fatal(err)
	}
	s := spec.local
	if s.memory != local.DefaultMemory || s.disk != local.DefaultDisk || s.processes != local.DefaultProcesses ||
		s.maxRead != local.DefaultMaxRead || s.warm != 1 || s.python != "" || len(s.preload) != 0 {
		t.Errorf("defaults %+v", *s)
	}
	for memory, want := range map[int64]int{
		0: 200, 64 << 20: 1, 128 << 20: 1, 1 << 30: 8, 8 << 30: 64, 25 << 30: 200, 1 << 40: 200,
	} {
		if got := defaultMaxLocal(memory); got != want {
			t.Errorf("%d sandboxes for %d bytes, want %d", got, memory, want)
		}
	}
}

func TestParseMemTotal(t *testing.T) {
	for meminfo, want := range map[string]int64{
		"MemTotal:        8131384 kB\nMemFree: 12 kB\n": 8131384 << 10,
		"MemFree: 12 kB\nMemTotal: 4 kB":                4096,
		"MemTotal: many kB\n":                           0,
		"":                                              0,
	} {
		if got := parseMemTotal(meminfo); got != want {
			t.Errorf("%q: %d bytes, want %d", meminfo, got, want)
		}
	}
}

// TestResolve looks at what becomes of options that are given.
func TestResolve(t *testing.T) {
	keyFile := filepath.Join(t.TempDir(), "key")
	writeFile(t, keyFile, "e2b_filed\n")
	t.Setenv("MY_KEY", " e2b_mine ")
	t.Setenv("MY_SECRET", "0123456789abcdef")
	t.Setenv("MY_HOST", "sandboxes.example")
	for _, tc := range []struct {
		name   string
		config E2B
		env    map[string]string
		want   e2bSpec
	}{
		{
			"placeholders",
			E2B{
				APIKey: "{env.MY_KEY}", Secret: "{env.MY_SECRET}", APIURL: "https://api.{env.MY_HOST}/",
				SandboxURL: "http://{port}-{id}.{env.MY_HOST}/{domain}", Template: "t", Internet: new(false),
			},
			nil,
			e2bSpec{
				apiKey: "e2b_mine", secret: "0123456789abcdef", apiURL: "https://api.sandboxes.example",
				sandboxURL: "http://{port}-{id}.sandboxes.example/{domain}", template: "t",
			},
		},
		{"key file", E2B{APIKey: "{file." + keyFile + "}"}, nil, e2bSpec{apiKey: "e2b_filed", internet: true}},
		{
			"no key where none is needed",
			E2B{APIURL: "http://10.0.0.1:3000"},
			nil,
			e2bSpec{apiURL: "http://10.0.0.1:3000", internet: true},
		},
		{
			"environment",
			E2B{},
			map[string]string{
				envAPIKey: "k", envAPIURL: "http://10.0.0.1:3000", envDomain: "sb.example:8080", envSandboxURL: "http://{id}.sb",
			},
			e2bSpec{apiKey: "k", apiURL: "http://10.0.0.1:3000", domain: "sb.example:8080", sandboxURL: "http://{id}.sb", internet: true},
		},
		{
			"domain decides the control plane",
			E2B{APIKey: "k", Domain: "sb.example"},
			nil,
			e2bSpec{apiKey: "k", apiURL: "https://api.sb.example", domain: "sb.example", internet: true},
		},
		{
			"options come before the environment",
			E2B{APIKey: "mine", Domain: "mine.example"},
			map[string]string{envAPIKey: "k", envDomain: "sb.example"},
			e2bSpec{apiKey: "mine", apiURL: "https://api.mine.example", domain: "mine.example", internet: true},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for name, value := range tc.env {
				t.Setenv(name, value)
			}
			tc.want.apiURL = or(tc.want.apiURL, e2b.DefaultAPIURL)
			tc.want.domain = or(tc.want.domain, e2b.DefaultDomain)
			tc.want.template = or(tc.want.template, e2b.DefaultTemplate)
			tc.want.maxRead = 5
			got, err := tc.config.spec(5)
			if err != nil {
				t.Fatal(err)
			}
			if *got != tc.want {
				t.Errorf("resolved to %+v\nwant %+v", *got, tc.want)
			}
		})
	}
}

// TestExecutionFitsIntoItsRequest lets the default give way, not the option.
func TestExecutionFitsIntoItsRequest(t *testing.T) {
	c := &CodeInterpreter{RequestTimeout: caddy.Duration(20 * time.Second)}
	limits, err := c.limits(backendSpec{e2b: new(e2bSpec)})
	if err != nil || limits.ExecTimeout != 20*time.Second {
		t.Errorf("exec_timeout %v, error %v", limits.ExecTimeout, err)
	}
}

// TestProvisionMakesNoConnection loads E2B without a server.
func TestProvisionMakesNoConnection(t *testing.T) {
	mustProvision(t, `{"sandbox": {"e2b": {"api_key": "k", "api_url": "http://unreachable.invalid"}}}`)
}

func TestProvisionOfLocal(t *testing.T) {
	if _, err := os.Stat("/usr/bin/bwrap"); err != nil {
		t.Skip("bubblewrap is not installed")
	}
	c, cleanup := mustProvision(t, `{"sandbox": {"local": {"warm": 0}}}`)
	if c.lease.backend.server == nil {
		t.Error("there is no server of sandboxes")
	}
	cleanup()
	drains.work.Wait()
}
