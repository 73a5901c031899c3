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
	"bytes"
	"strings"
	"testing"
)

func specs(change func(*e2bSpec)) (a, b backendSpec) {
	base := e2bSpec{apiKey: "key", apiURL: "https://a", domain: "d", template: "t"}
	changed := base
	change(&changed)
	return backendSpec{e2b: &base}, backendSpec{e2b: &changed}
}

func mustSecret(t *testing.T, s backendSpec) []byte {
	t.Helper()
	secret, err := s.secret()
	if err != nil {
		t.Fatal(err)
	}
	if len(secret) != secretSize {
		t.Fatalf("a secret of %d bytes", len(secret))
	}
	return secret
}

// TestGatewaysOfAFleetFindEachOthersSessions holds secret and fingerprint to
// being functions of the configuration, and to what they may depend on.
func TestGatewaysOfAFleetFindEachOthersSessions(t *testing.T) {
	for _, tc := range []struct {
		name                        string
		change                      func(*e2bSpec)
		sameSecret, sameFingerprint bool
	}{
		{"nothing", func(*e2bSpec) {}, true, true},
		{"max_read", func(s *e2bSpec) { s.maxRead = 1 }, true, true},
		{"template", func(s *e2bSpec) { s.template = "other" }, true, false},
		{"internet", func(s *e2bSpec) { s.internet = true }, true, false},
		{"domain", func(s *e2bSpec) { s.domain = "other" }, true, false},
		{"api_key", func(s *e2bSpec) { s.apiKey = "other" }, false, false},
		{"secret", func(s *e2bSpec) { s.secret = "0123456789abcdef" }, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := specs(tc.change)
			secretA, secretB := mustSecret(t, a), mustSecret(t, b)
			if same := bytes.Equal(secretA, secretB); same != tc.sameSecret {
				t.Errorf("same secret: %t, want %t", same, tc.sameSecret)
			}
			if same := a.fingerprint(secretA) == b.fingerprint(secretB); same != tc.sameFingerprint {
				t.Errorf("same fingerprint: %t, want %t", same, tc.sameFingerprint)
			}
		})
	}
}

// TestSecretIsStable fails when a change makes every gateway lose the sessions
// of the release before.
func TestSecretIsStable(t *testing.T) {
	a, _ := specs(func(*e2bSpec) {})
	secret := mustSecret(t, a)
	const want = "a190a1ea8eab9a73f40cf19cf9fc6d2f"
	if got := a.fingerprint(secret); got != want {
		t.Errorf("fingerprint %s, want %s", got, want)
	}
}

// TestConfiguredSecretReplacesTheKey lets gateways with different keys share
// sessions, where both reach the same sandboxes.
func TestConfiguredSecretReplacesTheKey(t *testing.T) {
	a, b := specs(func(s *e2bSpec) { s.apiKey = "other" })
	a.e2b.secret, b.e2b.secret = "0123456789abcdef", "0123456789abcdef"
	if !bytes.Equal(mustSecret(t, a), mustSecret(t, b)) {
		t.Error("the key still matters")
	}
	if a.key() == b.key() {
		t.Error("sandboxes of different accounts share a backend")
	}
}

// TestNobodyFindsWhatHasNoSecret uses the random secret of the process.
func TestNobodyFindsWhatHasNoSecret(t *testing.T) {
	keyless := backendSpec{e2b: &e2bSpec{apiURL: "http://10.0.0.1"}}
	local := backendSpec{local: new(localSpec)}
	if keyless.found() || local.found() {
		t.Error("these sandboxes can be found again")
	}
	if secret := mustSecret(t, keyless); !bytes.Equal(secret, processSecret[:]) || bytes.Equal(secret, make([]byte, secretSize)) {
		t.Error("the secret is not the random one of the process")
	}
}

func TestFingerprintGivesNothingAway(t *testing.T) {
	a, _ := specs(func(*e2bSpec) {})
	if fingerprint := a.fingerprint(mustSecret(t, a)); len(fingerprint) != 2*fingerprintSize || strings.Contains(fingerprint, "key") {
		t.Errorf("fingerprint %q", fingerprint)
	}
}

func TestDigestKeepsBoundaries(t *testing.T) {
	if digest("ab", "c") == digest("a", "bc") || digest("a") == digest("a", "") {
		t.Error("different lists have the same digest")
	}
}

func TestChangedLocalSandboxesHaveTheirOwnKey(t *testing.T) {
	base := localSpec{python: "p", memory: 1, disk: 2, processes: 3}
	seen := map[[32]byte]string{backendSpec{local: &base}.key(): "the first"}
	for name, change := range map[string]func(*localSpec){
		"python":    func(s *localSpec) { s.python = "q" },
		"memory":    func(s *localSpec) { s.memory = 9 },
		"disk":      func(s *localSpec) { s.disk = 9 },
		"processes": func(s *localSpec) { s.processes = 9 },
		"preload":   func(s *localSpec) { s.preload = []string{"numpy"} },
	} {
		changed := base
		change(&changed)
		key := backendSpec{local: &changed}.key()
		if same, ok := seen[key]; ok {
			t.Errorf("another %s has the key of %s", name, same)
		}
		seen[key] = name
	}
}
