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

// Package e2b is a client of the E2B protocol: the control plane, which makes
package local

import (
	"testing"
)

func TestSandboxRunsCodeAndKeepsState(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	c.want(b, "x = 42; print(x)", "42")
	c.want(b, "x + 1", "43")
	if status, text := c.call(t.Context(), nil, "DELETE", "/sandboxes/"+b.ID, nil); status != 204 {
		t.Fatalf("delete: %d %s", status, text)
	}
}
