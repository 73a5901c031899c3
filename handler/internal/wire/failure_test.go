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

package wire

import "testing"

func TestErrorsOfEveryFormCanBeRead(t *testing.T) {
	said := func(message string) string { return string(ErrorObject(message, "upstream_error", "")) }
	for _, c := range []struct {
		name, body, want string
		known            bool // it can be told from a body that is no error
	}{
		{"object", `{"error":{"message":"m","code":429}}`, `{"error":{"message":"m","code":429}}`, true},
		{"object with more beside it", ` {"error":{"code":1},"message":"m"} `, `{"error":{"code":1},"message":"m"}`, true},
		{"string", `{"error":"m"}`, said("m"), true},
		{"array", `[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]`, `{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}`, true},
		{"array in the member", `{"error":[{"message":"m"}]}`, `{"error":{"message":"m"}}`, true},
		{"number", `{"error":500}`, said("500"), true},
		{"message and code", `{"code":"x","message":"m"}`, `{"error":{"code":"x","message":"m"}}`, true},
		{"detail", `{"detail":"m"}`, said("m"), true},
		{"details", `{"detail":[{"loc":["body"],"msg":"m"}]}`, said(`[{"loc":["body"],"msg":"m"}]`), true},
		{"errors", `{"success":false,"errors":[{"code":7,"message":"m"}]}`, `{"error":{"code":7,"message":"m"}}`, true},
		{"text", `overloaded`, said("overloaded"), false},
		{"string alone", `"m"`, said("m"), false},
		{"bytes that are no UTF-8", "m\xff", said("m\uFFFD"), false},
		{"nothing said", `{"x":1}`, `{"error":{"x":1}}`, false},
		{"no error", `{"error":null,"choices":[]}`, `{"error":{"error":null,"choices":[]}}`, false},
		{"false", `{"error":false}`, `{"error":{"error":false}}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(FailureOf([]byte(c.body))); got != c.want {
				t.Errorf("FailureOf: %s, want %s", got, c.want)
			}
			if got, ok := ErrorIn([]byte(c.body)); ok != c.known || ok && string(got) != c.want {
				t.Errorf("ErrorIn: %s, %t", got, ok)
			}
		})
	}
}

// A chunk may be an error although it does not say so in that member.
func TestChunksThatAreErrors(t *testing.T) {
	check := func(want bool, chunks ...string) {
		for _, data := range chunks {
			var c Chunk
			if !c.Parse([]byte(data)) || c.Failed() != want {
				t.Errorf("%s: Failed is not %t", data, want)
			}
		}
	}
	check(true, `{"error":{"message":"m"}}`, `{"error":"m","choices":[]}`, `{"error":[{"message":"m"}]}`, `{"error":503}`,
		`{"object":"error","message":"m","type":"x","code":400}`, `{"code":"InvalidParameter","message":"m","request_id":"r"}`, `{"detail":"m"}`)
	check(false, `{"error":null}`, `{"error":""}`, `{"error":{}}`, `{"error":false}`, `{"error":0}`, `{"type":"ping"}`,
		`{"message":"waiting","position":3}`, `{"choices":[{"delta":{}}],"code":0,"message":"success"}`, `{"usage":{"total_tokens":1}}`)
}
