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
	"reflect"
	"strings"
	"testing"
)

func TestContextsOfUntrustedAnswers(t *testing.T) {
	s := &fakeServer{replies: map[string][]reply{"GET /contexts": {{status: 200, body: `[
		{"id":"default","language":"python","cwd":"/home/user"}, {"id":"../execute"}, {"id":".."}, {"id":"a b"}, {"id":7}, 7, null, {"id":"x.1","language":7}]`}}}}
	got, err := newTestClient(t, s, nil).Contexts(t.Context(), newTestSandbox("sb1", ""))
	want := []Context{{ID: "default", Language: "python", Cwd: "/home/user"}, {ID: "x.1"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v, want %+v", got, err, want)
	}
}

func TestCreateContextLeavesEmptyFieldsToTheServer(t *testing.T) {
	s := &fakeServer{replies: map[string][]reply{"POST /contexts": {{status: 200, body: `{"id":"c1","language":"python","cwd":"/home/user"}`}, {status: 200, body: `{"id":"/"}`}}}}
	c := newTestClient(t, s, nil)
	got, err := c.CreateContext(t.Context(), newTestSandbox("sb1", ""), Context{ID: "ignored"})
	if err != nil || got != (Context{ID: "c1", Language: "python", Cwd: "/home/user"}) {
		t.Errorf("%+v %v", got, err)
	}
	if body := s.last().body; body != `{}` {
		t.Errorf("body %s", body)
	}
	_, err = c.CreateContext(t.Context(), newTestSandbox("sb1", ""), Context{})
	wantKind(t, err, BadAnswer)
}

func TestContextCalls(t *testing.T) {
	tests := []struct {
		name            string
		reply           reply
		restart, remove Kind
	}{
		{"done", reply{status: 200, body: "null"}, 0, 0},
		{"done without a body", reply{status: 204}, 0, 0},
		{"no such context", reply{status: 404, body: "Context c1 not found"}, ContextGone, 0},
		{"no such sandbox", reply{status: 502, body: `{"message":"The sandbox was not found"}`}, Gone, Gone},
		{"port closed", reply{status: 502, body: `{"message":"port is not open"}`}, NotReady, NotReady},
		{"a proxy's words", reply{status: 502, body: "reset"}, Unavailable, Unavailable},
		{"failure", reply{status: 500}, Unavailable, Unavailable},
		{"not authorized", reply{status: 401}, Unauthorized, Unauthorized},
		{"not there", reply{}, NotReady, NotReady},
		{"too large", reply{status: 200, body: strings.Repeat("a", maxContextsBody+1)}, TooLarge, TooLarge},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &fakeServer{replies: map[string][]reply{"POST /contexts/c1/restart": {test.reply}, "DELETE /contexts/c1": {test.reply}}}
			c := newTestClient(t, s, nil)
			sb := newTestSandbox("sb1", "")
			if err := c.RestartContext(t.Context(), sb, "c1"); KindOf(err) != test.restart {
				t.Errorf("restart: %v, want kind %q", err, test.restart)
			}
			if err := c.RemoveContext(t.Context(), sb, "c1"); KindOf(err) != test.remove {
				t.Errorf("remove: %v, want kind %q", err, test.remove)
			}
		})
	}
}

func TestContextIDsThatNoServerGaveAreNotSent(t *testing.T) {
	s := &fakeServer{}
	c := newTestClient(t, s, nil)
	for _, id := range []string{"", ".", "..", "a/b", "a%2fb", "a?b", strings.Repeat("a", 129)} {
		wantKind(t, c.RestartContext(t.Context(), newTestSandbox("sb1", ""), id), BadAnswer)
		wantKind(t, c.RemoveContext(t.Context(), newTestSandbox("sb1", ""), id), BadAnswer)
	}
	if got := s.calls(); len(got) != 0 {
		t.Errorf("calls %q", got)
	}
}
