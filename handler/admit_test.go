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
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

func TestBadRequestsAreRefusedBeforeTheUpstream(t *testing.T) {
	tool := `"tools":[{"type":"code_interpreter"}]`
	messages := `"messages":[{"role":"user","content":"?"}]`
	long := `"` + strings.Repeat("x", 513) + `"`
	for name, c := range map[string]struct{ body, want string }{
		"n":                   {`{"n":2,` + tool + `,` + messages + `}`, "param:n"},
		"two tools":           {`{` + tool + `,` + messages + `,` + tool + `}`, "param:tools"},
		"two messages":        {`{` + tool + `,` + messages + `,` + messages + `}`, "param:messages"},
		"two metadata":        {`{"metadata":{},` + tool + `,` + messages + `,"metadata":{}}`, "param:metadata"},
		"two streams":         {`{"stream":true,` + tool + `,` + messages + `,"stream":false}`, "param:stream"},
		"no messages":         {`{` + tool + `}`, "param:messages"},
		"messages are text":   {`{` + tool + `,"messages":"?"}`, "param:messages"},
		"session_id null":     {`{"metadata":{"session_id":null},` + tool + `,` + messages + `}`, "param:metadata.session_id"},
		"session_id a number": {`{"metadata":{"session_id":1},` + tool + `,` + messages + `}`, "param:metadata.session_id"},
		"session_id empty":    {`{"metadata":{"session_id":""},` + tool + `,` + messages + `}`, "param:metadata.session_id"},
		"session_id long":     {`{"metadata":{"session_id":` + long + `},` + tool + `,` + messages + `}`, "param:metadata.session_id"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				f.post(c.body).refuses(t, http.StatusBadRequest, c.want)
				f.upstream.wants(0)
			})
		})
	}
}

func TestOfferAlways(t *testing.T) {
	always := func(c *handler.Config, _ *session.Limits) { c.Offer = handler.OfferAlways }
	function := map[string]any{"type": "function", "function": map[string]any{"name": "f"}}
	for name, c := range map[string]struct {
		fields  map[string]any
		offered bool
	}{
		"plain":               {nil, true},
		"tools of the client": {map[string]any{"tools": []any{function}}, true},
		"no tools":            {map[string]any{"tools": []any{}}, true},
		"text format":         {map[string]any{"response_format": map[string]any{"type": "text"}}, true},
		"n 1":                 {map[string]any{"n": 1}, true},
		"choice auto":         {map[string]any{"tool_choice": "auto"}, true},
		"with a session":      {map[string]any{"metadata": inSession("s")}, true},
		"json_object":         {map[string]any{"response_format": map[string]any{"type": "json_object"}}, false},
		"json_schema":         {map[string]any{"response_format": map[string]any{"type": "json_schema"}}, false},
		"choice none":         {map[string]any{"tool_choice": "none"}, false},
		"n 2":                 {map[string]any{"n": 2}, false},
		"functions":           {map[string]any{"functions": []any{map[string]any{"name": "f"}}}, false},
		"bad session_id":      {map[string]any{"metadata": inSession("")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, always, func(f *fixture) {
				fields := map[string]any{"tools": nil}
				maps.Copy(fields, c.fields)
				f.upstream.then(says("hello"))
				f.post(ask(fields)).says(t, "stop", "hello")
				a := f.upstream.asked()[0]
				if got := strings.Contains(a.body, "run_python"); got != c.offered {
					t.Errorf("offered: %v, want %v: %s", got, c.offered, a.body)
				}
				if strings.Contains(a.body, "session_id") {
					t.Errorf("the session id went upstream: %s", a.body)
				}
			})
		})
	}
	t.Run("code runs", func(t *testing.T) {
		inBubble(t, always, func(f *fixture) {
			f.upstream.then(runs("say hi"), says("done"))
			if m := f.post(ask(map[string]any{"tools": nil})).says(t, "stop", "done"); len(m.Executed) != 1 {
				t.Errorf("executed: %v", m.Executed)
			}
		})
	})
}

// busy starts a request that runs for half a minute in the one session that its
// caller may have.
func busy(f *fixture) (ended <-chan struct{}) {
	f.upstream.always = runsOnce("sleep 30s")
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.post(ask(map[string]any{"metadata": inSession("one")}), "Api-Key", "a").says(f.t, "stop", "done")
	}()
	synctest.Wait()
	return done
}

func TestNoSessionIsFree(t *testing.T) {
	one := func(_ *handler.Config, l *session.Limits) { l.MaxPerIdentity = 1 }
	other := map[string]any{"metadata": inSession("two")}
	t.Run("with the tool", func(t *testing.T) {
		inBubble(t, one, func(f *fixture) {
			ended := busy(f)
			asked := len(f.upstream.asked())
			w := f.post(ask(other), "Api-Key", "a")
			w.refuses(t, http.StatusTooManyRequests, "rate_limit_error")
			if w.header.Get("Retry-After") != "5" {
				t.Errorf("Retry-After %q", w.header.Get("Retry-After"))
			}
			f.upstream.wants(asked)
			<-ended
		})
	})
	t.Run("under offer always", func(t *testing.T) {
		edit := func(c *handler.Config, l *session.Limits) {
			one(c, l)
			c.Offer = handler.OfferAlways
		}
		inBubble(t, edit, func(f *fixture) {
			ended := busy(f)
			f.post(ask(map[string]any{"tools": nil, "metadata": inSession("two")}), "Api-Key", "a").says(t, "stop", "hello")
			seen := f.upstream.asked()
			if last := seen[len(seen)-1].body; strings.Contains(last, "run_python") || strings.Contains(last, "session_id") {
				t.Errorf("the upstream was asked %s", last)
			}
			<-ended
		})
	})
	t.Run("for another caller", func(t *testing.T) {
		inBubble(t, one, func(f *fixture) {
			ended := busy(f)
			f.post(ask(other), "Api-Key", "b").says(t, "stop", "done")
			<-ended
		})
	})
}

func TestToolHasTheNameThatIsConfigured(t *testing.T) {
	edit := func(c *handler.Config, _ *session.Limits) { c.ToolName = "weather" }
	inBubble(t, edit, func(f *fixture) {
		f.upstream.then(calls(call{"call_1", "weather_2", `{"code":"say hi"}`}), says("done"))
		if m := f.post(ask(mixed(nil))).says(t, "stop", "done"); len(m.Executed) != 1 || len(m.ToolCalls) != 0 {
			t.Errorf("the client got %+v", m)
		}
	})
}
