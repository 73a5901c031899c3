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

package session

import (
	"regexp"
	"testing"
)

func TestKeysOfDifferentTriplesNeverMeet(t *testing.T) {
	secret := []byte("secret")
	seen := map[string]string{}
	add := func(what, key string) {
		if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(key) {
			t.Errorf("%s: key %q", what, key)
		}
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s have the same key", what, other)
		}
		seen[key] = what
	}
	add("user a, bc", Key(secret, Caller{"user", "a"}, "bc"))
	add("user ab, c", Key(secret, Caller{"user", "ab"}, "c"))
	add("key a, bc", Key(secret, Caller{"key", "a"}, "bc"))
	add("usera , bc", Key(secret, Caller{"usera", ""}, "bc"))
	add("separator in the name", Key(secret, Caller{"user", "a\x00bc"}, ""))
	add("separator in the id", Key(secret, Caller{"user", "a"}, "\x00bc"))
	add("empty", Key(secret, Caller{}, ""))
	add("other secret", Key([]byte("secre7"), Caller{"user", "a"}, "bc"))
	add("identity a", identityKey(secret, Caller{"user", "a"}))
	add("identity of the name that a triple would be", identityKey(secret, Caller{"user", "a\x00\x00\x00\x00\x00\x00\x00\x02bc"}))
	if other := Key([]byte("secret"), Caller{"user", "a"}, "bc"); seen[other] != "user a, bc" {
		t.Error("the same triple has two keys")
	}
}

func TestEmptySecretIsReplacedByARandomOne(t *testing.T) {
	a, b := NewPool(Config{}), NewPool(Config{})
	key := a.Open(alice, "s").key
	if key == b.Open(alice, "s").key || key == Key(nil, alice, "s") {
		t.Error("the key can be guessed")
	}
}
