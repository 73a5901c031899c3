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

package handler_test

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

func TestCodeIsLoggedOnlyWhereThatIsConfigured(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		t.Run(fmt.Sprint(wanted), func(t *testing.T) {
			core, logs := observer.New(zap.DebugLevel)
			edit := func(c *handler.Config, _ *session.Limits) { c.Logger, c.LogCode = zap.New(core), wanted }
			inBubble(t, edit, func(f *fixture) {
				f.upstream.then(runs("say secret"), says("done"))
				f.post(ask(nil)).says(t, "stop", "done")
				if logs.FilterMessage("code execution").Len() != 1 {
					t.Error("the run is not in the log, so this test proves nothing")
				}
				logged := false
				for _, entry := range logs.All() {
					logged = logged || strings.Contains(fmt.Sprint(entry.Message, entry.ContextMap()), "secret")
				}
				if logged != wanted {
					t.Errorf("code and output are logged: %v", logged)
				}
			})
		})
	}
}
