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
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/logging" // for the log file
)

const (
	theKey     = "e2b_6f1ed0c2a9"
	theSecret  = "b1946ac92492d2347c6235b4"
	theSession = "chat-of-alice-4711"
)

// TestSecretsStayOutOfTheModule prints a provisioned module in every way in
// which Caddy or a debugger may.
func TestSecretsStayOutOfTheModule(t *testing.T) {
	t.Setenv("THE_KEY", theKey)
	t.Setenv("THE_SECRET", theSecret)
	c, _ := mustProvision(t, `{"sandbox": {"e2b": {"api_key": "{env.THE_KEY}", "secret": "{env.THE_SECRET}"}}}`)
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		string(asJSON), fmt.Sprintf("%v", c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprintf("%+v", *c),
		fmt.Sprintf("%+v", *c.lease), fmt.Sprintf("%+v", c.lease.backend.client),
	} {
		noSecrets(t, text)
	}
	if !strings.Contains(string(asJSON), "{env.THE_KEY}") {
		t.Errorf("the placeholder is not in the JSON: %s", asJSON)
	}
}

func noSecrets(t *testing.T, text string) {
	t.Helper()
	for _, secret := range []string{theKey, theSecret, theSession} {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("%s is shown: ...%s", secret, text[max(i-200, 0):i+len(secret)])
		}
	}
}

// TestSecretsStayOutOfLogs has Caddy log everything it can while a request
// runs code in a session.
func TestSecretsStayOutOfLogs(t *testing.T) {
	t.Setenv("THE_KEY", theKey)
	t.Setenv("THE_SECRET", theSecret)
	f := newFakeE2B(t)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := new(upstream).ServeHTTP(w, r); err != nil {
			t.Error(err)
		}
	}))
	defer model.Close()
	dir := shortTempDir(t)
	logFile, socket := filepath.Join(dir, "log"), filepath.Join(dir, "socket")
	load(t, fmt.Sprintf(`{
	admin off
	persist_config off
	log {
		output file %s
		level DEBUG
	}
	servers {
		trace
	}
}

http://localhost {
	bind unix/%s
	code_interpreter {
		sandbox e2b {
			api_key {env.THE_KEY}
			secret {env.THE_SECRET}
			api_url %s
			sandbox_url %s
		}
	}
	reverse_proxy %s
}
`, logFile, socket, f.URL, f.URL, model.URL))

	if answer := post(t, socket, theSession); !strings.Contains(answer, "result: ok") {
		t.Fatalf("the answer is %s", answer)
	}
	logged, err := os.ReadFile(logFile)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(logged), "{env.THE_KEY}") {
		t.Errorf("the handler's options are not in the log, so this test proves nothing: %s", logged)
	}
	noSecrets(t, string(logged))
}

// shortTempDir is a directory for a socket, whose path may not be long.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ci")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// load runs a Caddyfile in this process until the test ends.
func load(t *testing.T, caddyfile string) {
	t.Helper()
	config, err := adapt(t, caddyfile)
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
		drains.work.Wait()
	})
}

// post sends a chat request with the tool and returns the answer.
func post(t *testing.T, socket, session string) string {
	t.Helper()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}
	r := chat(session).WithContext(t.Context())
	r.RequestURI = ""
	r.URL.Scheme, r.URL.Host, r.Host = "http", "localhost", "localhost"
	response, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
