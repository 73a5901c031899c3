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

package caddytest_test

import (
	"testing"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/caddytest/gateways"
)

// Two gateways with one directory: sessions go on whichever gets the request, and
// when one of them dies.
func TestGatewaysShareSessionsInADirectory(t *testing.T) {
	gateways.Trial{
		Binary:   gateways.Build(t, "../cmd/caddy"),
		Storage:  "file_system " + t.TempDir(),
		Requests: 300, Callers: 4, Sessions: 5,
	}.Full().Run(t)
}
