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

package e2b

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestDefaults(t *testing.T) {
	c, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := c.config
	if got.APIURL != "https://api.e2b.app" || got.Domain != "e2b.app" || got.Template != "code-interpreter-v1" || got.MaxRead != 16<<20 || got.Internet {
		t.Errorf("%v", got)
	}
	if c.own == nil || c.own.Proxy == nil {
		t.Error("the client's own transport does not heed the environment's proxy")
	}
}

func TestConfigurationsThatCannotWork(t *testing.T) {
	const secret = "s3cret"
	tests := []struct {
		name   string
		config Config
		want   string // what the error names
	}{
		{"API URL without scheme", Config{APIURL: "api.test"}, `api_url: "api.test"`},
		{"API URL of another scheme", Config{APIURL: "ftp://api.test"}, "api_url"},
		{"API URL without host", Config{APIURL: "https:///x"}, "api_url"},
		{"API URL that does not parse", Config{APIURL: "https://u:" + secret + "@api.test:port"}, "api_url"},
		{"API URL with user information", Config{APIURL: "https://u:" + secret + "@api.test"}, "api_url"},
		{"API URL with a query", Config{APIURL: "https://api.test?key=" + secret}, "api_url"},
		{"API URL with a fragment", Config{APIURL: "https://api.test#" + secret}, "api_url"},
		{"domain with scheme", Config{Domain: "https://e2b.test"}, "domain"},
		{"domain with path", Config{Domain: "e2b.test/x"}, "domain"},
		{"domain with user information", Config{Domain: secret + "@e2b.test"}, "domain"},
		{"domain with a space", Config{Domain: "e2b .test"}, "domain"},
		{"domain with a query", Config{Domain: "e2b.test?" + secret}, "domain"},
		{"domain with a bad port", Config{Domain: "e2b.test:x"}, "domain"},
		{"sandbox URL with another placeholder", Config{SandboxURL: "https://{host}"}, `"{host}" is not a placeholder`},
		{"sandbox URL with user information", Config{SandboxURL: "https://u:" + secret + "@h"}, "sandbox_url"},
		{"sandbox URL without scheme", Config{SandboxURL: "{port}-{id}.{domain}"}, "sandbox_url"},
		{"key with a line break", Config{APIKey: secret + "\n"}, "api_key"},
		{"key with a space", Config{APIKey: secret + " x"}, "api_key"},
		{"key that is not ASCII", Config{APIKey: secret + "ä"}, "api_key"},
		{"negative limit", Config{MaxRead: -1}, "max_read: -1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := New(test.config)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want one with %q", err, test.want)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("error %q tells a secret", err)
			}
		})
	}
}

// printed is everything that formatting, encoding and logging make of a value.
func printed(t *testing.T, values ...any) string {
	t.Helper()
	var b strings.Builder
	core, logs := observer.New(zapcore.DebugLevel)
	for _, v := range values {
		fmt.Fprintf(&b, "%v %+v %#v %s %q\n", v, v, v, v, v)
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(encoded)
		zap.New(core).Debug("value", zap.Any("value", v), zap.Reflect("reflected", v))
	}
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	for _, entry := range logs.All() {
		line, err := encoder.EncodeEntry(entry.Entry, entry.Context)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(line.Bytes())
	}
	return b.String()
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	s := &fakeServer{replies: map[string][]reply{"POST /sandboxes": {{status: 201, body: `{"sandboxID":"sb1","envdAccessToken":"envd-secret","trafficAccessToken":"traffic-secret"}`}}}}
	c := newTestClient(t, s, nil)
	sb, err := c.Create(t.Context(), minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	holder := struct {
		Sandbox *Sandbox
		Config  Config
	}{sb, c.config}
	out := printed(t, sb, map[string]any{"sandbox": sb}, holder, c, c.config, &c.config)
	for _, secret := range []string{testKey, "envd-secret", "traffic-secret"} {
		if strings.Contains(out, secret) {
			t.Errorf("%s is printed: %s", secret, out)
		}
	}
	if !strings.Contains(out, "sb1") {
		t.Error("the id is not printed")
	}
}

// Servers echo what they were sent. The words are for the operator's debug log,
// the secrets for nobody.
func TestProviderWordsAreLoggedWithoutSecrets(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	words := "provider words about " + testKey + " envd-secret traffic-secret " + strings.Repeat("ä", 4000)
	s := &fakeServer{replies: map[string][]reply{
		"POST /sandboxes": {{status: 401, body: words}}, "POST /execute": {{status: 500, body: words}},
	}}
	c := newTestClient(t, s, func(config *Config) { config.Logger = zap.New(core) })
	_, createErr := c.Create(t.Context(), minute, nil)
	_, executeErr := execute(t.Context(), c, Execution{})
	for _, err := range []error{createErr, executeErr} {
		if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, "provider words") || strings.Contains(text, ".test") {
			t.Errorf("error %q tells what the provider said or where it is", text)
		}
	}
	if logs.Len() != 2 {
		t.Fatalf("%d log entries, want 2", logs.Len())
	}
	for _, entry := range logs.All() {
		answer, _ := entry.ContextMap()["answer"].(string)
		if entry.Level != zapcore.DebugLevel || !strings.HasPrefix(answer, "provider words") || len(answer) > maxLogged+3 {
			t.Errorf("entry %+v", entry)
		}
		for _, secret := range []string{testKey, "envd-secret", "traffic-secret"} {
			if entry.ContextMap()["op"] == "execute" && strings.Contains(answer, secret) {
				t.Errorf("%s is logged: %s", secret, answer)
			}
		}
		if strings.Contains(answer, testKey) {
			t.Errorf("the key is logged: %s", answer)
		}
	}
}

func TestSecretsInURLsAreHidden(t *testing.T) {
	const secret = "5ecret"
	for value, want := range map[string]string{
		"https://host:1/path":                 "https://host:1/path",
		"https://{port}-{id}.{domain}":        "https://{port}-{id}.{domain}",
		"https://user:" + secret + "@host":    "...@host",
		"https://user:pa/" + secret + "@host": "...@host",
		"https://user:pa@" + secret + "@host": "...@host",
		"https://user:" + secret + "?@host":   "...",
		"https://host?key=" + secret:          "https://host?...",
		"https://host/?key=a@" + secret:       "...",
		"https://host/#" + secret:             "https://host/#...",
		"https://user@host#" + secret:         "...@host#...",
	} {
		if got := HideSecrets(value); got != want {
			t.Errorf("%s is shown as %s, want %s", value, got, want)
		}
	}
}
