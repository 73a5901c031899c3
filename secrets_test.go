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
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// TestSecretsStayOutOfDoctorsOutput has doctor look at URLs that may have none.
func TestSecretsStayOutOfDoctorsOutput(t *testing.T) {
	f := newFakeE2B(t)
	for _, address := range []string{"https://h?key=" + theKey, "https://user:pa/" + theKey + "@h", "https://h/#" + theKey} {
		for _, option := range []string{"api_url", "sandbox_url"} {
			stdout, _, err := command(t, doctorCommand(), "", "--config", configFile(t, f, map[string]any{option: address}))
			if err == nil || !strings.Contains(stdout, option) {
				t.Errorf("%v, %s is not in\n%s", err, option, stdout)
			}
			noSecrets(t, stdout)
		}
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
	f, model := newFakeE2B(t), newModel(t)
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

	if answer, err := post(t, socket, theSession); err != nil || !strings.Contains(answer, "result: ok") {
		t.Fatalf("the answer is %s, error %v", answer, err)
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
