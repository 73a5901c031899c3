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
	"sync"
	"testing"
	"time"
)

// Requests of many callers run at once, each in a session with another one of
// the same caller, and each gets its own answer.
func TestConcurrentRequestsKeepApart(t *testing.T) {
	const callers, requests = 8, 12
	inBubble(t, nil, func(f *fixture) {
		f.upstream.always = echoes
		var all sync.WaitGroup
		for i := range callers * requests {
			all.Go(func() {
				time.Sleep(time.Duration(i%7) * time.Millisecond)
				code := fmt.Sprintf("x = %d\nsleep 2ms\nprint x", i)
				body := ask(map[string]any{
					"stream":   i%2 == 0,
					"messages": []any{map[string]any{"role": "user", "content": code}},
					"metadata": inSession(fmt.Sprint("s", i%3)),
				})
				w := f.post(body, "Api-Key", fmt.Sprint("k", i%callers))
				w.says(t, "stop", fmt.Sprint(i))
			})
		}
		all.Wait()
		if _, created := f.sandboxes.count(); created != callers*3 {
			t.Errorf("%d sandboxes for %d sessions", created, callers*3)
		}
	})
}
