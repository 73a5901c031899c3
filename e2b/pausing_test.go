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
	"testing"
	"time"
)

func TestOnlyCreatePausingAsksForAPause(t *testing.T) {
	s := &fakeServer{replies: map[string][]reply{"POST /sandboxes": {{status: 201, body: sandboxBody}, {status: 201, body: sandboxBody}}}}
	c := newTestClient(t, s, nil)
	for _, pausing := range []bool{true, false} {
		create := c.Create
		if pausing {
			create = c.CreatePausing
		}
		if _, err := create(t.Context(), time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		var body map[string]any
		if err := json.Unmarshal([]byte(s.last().body), &body); err != nil {
			t.Fatal(err)
		}
		if got, sent := body["autoPause"]; sent != pausing || pausing && got != true {
			t.Errorf("autoPause is %v, sent %t, want %t", got, sent, pausing)
		}
	}
}
