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
	"testing"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// weather is a tool of the client.
var weather = map[string]any{"type": "function", "function": map[string]any{"name": "weather", "parameters": map[string]any{"type": "object"}}}

// mixed is a request with the tool and one of the client.
func mixed(fields map[string]any) map[string]any {
	all := map[string]any{"tools": []any{map[string]any{"type": "code_interpreter"}, weather}}
	maps.Copy(all, fields)
	return all
}

// Keys of two callers.
const alice, bob = "Bearer sk-alice", "Bearer sk-bob"

var user = map[string]any{"role": "user", "content": "?"}

// begin has the model call both tools and returns the conversation with the
// client's result, as the client sends it next.
func begin(t *testing.T, f *fixture, fields map[string]any, header ...string) []any {
	t.Helper()
	f.upstream.then(turn{calls: []call{python("call_1", "say hi"), {"call_2", "weather", `{"city":"Oslo"}`}}}.reply())
	w := f.post(ask(mixed(fields)), header...)
	m := w.says(t, "tool_calls", "")
	if len(m.ToolCalls) != 1 || m.ToolCalls[0].ID != "call_2" || m.ToolCalls[0].Function.Name != "weather" {
		t.Fatalf("the client got %+v", m.ToolCalls)
	}
	if len(m.Executed) == 0 {
		t.Errorf("nothing was shown of the code: %s", w.text())
	}
	// With another spelling than it came in: clients build messages anew.
	assistant := map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
		"id": "call_2", "type": "function", "function": map[string]any{"name": "weather", "arguments": `{"city":"Oslo"}`},
	}}}
	result := map[string]any{"role": "tool", "tool_call_id": "call_2", "content": "rain"}
	return []any{user, assistant, result}
}

// resume sends the client's result and says whether the hidden call was put
// back in front of the model.
func resume(t *testing.T, f *fixture, fields map[string]any, header ...string) bool {
	t.Helper()
	f.upstream.then(says("done"))
	f.post(ask(mixed(fields)), header...).says(t, "stop", "done")
	seen := f.upstream.asked()
	messages := seen[len(seen)-1].messages(t)
	list, _ := messages[1]["tool_calls"].([]any)
	switch len(list) {
	case 1:
		if len(messages) != 3 {
			t.Errorf("the messages are %v", messages)
		}
		return false
	case 2:
		if len(messages) != 4 || messages[2]["tool_call_id"] != "call_1" || messages[2]["content"] != "hi" ||
			messages[3]["tool_call_id"] != "call_2" || messages[3]["content"] != "rain" {
			t.Errorf("the messages are %v", messages)
		}
		return true
	}
	t.Fatalf("the messages are %v", messages)
	return false
}

func TestHiddenCallOfAMixedTurnIsPutBack(t *testing.T) {
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, nil, func(f *fixture) {
			conversation := begin(t, f, map[string]any{"stream": stream})
			if !resume(t, f, map[string]any{"messages": conversation, "stream": stream}) {
				t.Error("the model did not see its call again")
			}
			if ran := f.sandboxes.ran(); len(ran) != 1 {
				t.Errorf("these ran: %q", ran)
			}
		})
	})
}

func TestHiddenCallIsRememberedForItsOwnConversationOnly(t *testing.T) {
	id := map[string]any{"metadata": inSession("s")}
	for name, c := range map[string]struct {
		first, second map[string]any
		key           string
		change        func([]any)
		wait          time.Duration
		hit           bool
	}{
		"same caller and session": {id, id, alice, nil, 0, true},
		"another caller":          {id, id, bob, nil, 0, false},
		"another session":         {id, map[string]any{"metadata": inSession("t")}, alice, nil, 0, false},
		"no session":              {id, nil, alice, nil, 0, false},
		"another history": {id, id, alice, func(messages []any) {
			messages[0] = map[string]any{"role": "user", "content": "!"}
		}, 0, false},
		"another call": {id, id, alice, func(messages []any) {
			messages[1].(map[string]any)["tool_calls"].([]any)[0].(map[string]any)["id"] = "call_9"
			messages[2].(map[string]any)["tool_call_id"] = "call_9"
		}, 0, false},
		"just before it is forgotten": {id, id, alice, nil, 15*time.Minute - time.Second, true},
		"when it is forgotten":        {id, id, alice, nil, 15*time.Minute + time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				conversation := begin(t, f, c.first, "Authorization", alice)
				if c.change != nil {
					c.change(conversation)
				}
				time.Sleep(c.wait)
				fields := map[string]any{"messages": conversation}
				maps.Copy(fields, c.second)
				if got := resume(t, f, fields, "Authorization", c.key); got != c.hit {
					t.Errorf("put back: %v, want %v", got, c.hit)
				}
			})
		})
	}
}

// Clients behind a proxy that nobody trusts share an address, and no sessions.
func TestHiddenCallIsNotRememberedOfStrangers(t *testing.T) {
	const forwarded = "X-Forwarded-For"
	for name, c := range map[string]struct {
		first, second []string
		hit           bool
	}{
		"behind a proxy":         {[]string{forwarded, "192.0.2.1"}, []string{forwarded, "192.0.2.2"}, false},
		"the proxy afterwards":   {[]string{forwarded, "192.0.2.1"}, nil, false},
		"the proxy before":       {nil, []string{forwarded, "192.0.2.1"}, false},
		"an address of its own":  {nil, nil, true},
		"a key behind the proxy": {[]string{forwarded, "192.0.2.1", "Api-Key", "k"}, []string{forwarded, "192.0.2.1", "Api-Key", "k"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				conversation := begin(t, f, nil, c.first...)
				if got := resume(t, f, map[string]any{"messages": conversation}, c.second...); got != c.hit {
					t.Errorf("put back: %v, want %v", got, c.hit)
				}
			})
		})
	}
}

// Handlers with sandboxes of their own have callers of their own.
func TestHiddenCallIsRememberedInItsOwnPoolOnly(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		conversation := begin(t, f, nil, "Authorization", alice)
		config := f.h.Config
		config.Pool = session.NewPool(session.Config{Secret: []byte("another"), Fingerprint: "g"})
		defer drain(t, config.Pool)
		f.h = handler.New(config)
		if resume(t, f, map[string]any{"messages": conversation}, "Authorization", alice) {
			t.Error("the model of another handler saw the call")
		}
	})
}

func TestHiddenMessagesAreNotKeptPastTheirTime(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		begin(t, f, nil)
		if handler.Kept() == 0 {
			t.Error("nothing is kept")
		}
		time.Sleep(15*time.Minute + time.Second)
		if n := handler.Kept(); n != 0 {
			t.Errorf("%d bytes are still kept", n)
		}
	})
}

// The rounds before a mixed turn are hidden too and come back with it.
func TestEarlierRoundsComeBackWithAMixedTurn(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(calls(python("call_0", "say first")))
		conversation := begin(t, f, nil)
		f.upstream.then(says("done"))
		f.post(ask(mixed(map[string]any{"messages": conversation}))).says(t, "stop", "done")
		seen := f.upstream.asked()
		messages := seen[len(seen)-1].messages(t)
		if len(messages) != 6 || messages[2]["content"] != "first" || messages[4]["content"] != "hi" || messages[5]["content"] != "rain" {
			t.Errorf("the messages are %v", messages)
		}
	})
}

func TestEachMixedTurnOfAConversationIsPutBack(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		conversation := begin(t, f, nil)
		f.upstream.then(turn{calls: []call{python("call_3", "say ho"), {"call_4", "weather", `{}`}}}.reply())
		f.post(ask(mixed(map[string]any{"messages": conversation}))).says(t, "tool_calls", "")
		conversation = append(conversation, map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"id": "call_4", "type": "function", "function": map[string]any{"name": "weather", "arguments": `{}`},
		}}}, map[string]any{"role": "tool", "tool_call_id": "call_4", "content": "sun"})
		f.upstream.then(says("done"))
		f.post(ask(mixed(map[string]any{"messages": conversation}))).says(t, "stop", "done")
		var results []any
		seen := f.upstream.asked()
		for _, m := range seen[len(seen)-1].messages(t) {
			if m["role"] == "tool" {
				results = append(results, m["content"])
			}
		}
		if got := encode(results); got != `["hi","rain","ho","sun"]` {
			t.Errorf("the results are %s", got)
		}
	})
}

func TestCallsOfTheClientAloneAreTheClients(t *testing.T) {
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, nil, func(f *fixture) {
			f.upstream.then(calls(call{"call_1", "weather", `{}`}))
			m := f.post(ask(mixed(map[string]any{"stream": stream}))).says(t, "tool_calls", "")
			if len(m.ToolCalls) != 1 || m.ToolCalls[0].Function.Name != "weather" || len(m.Executed) != 0 {
				t.Errorf("the client got %+v", m)
			}
			if _, created := f.sandboxes.count(); created != 0 {
				t.Errorf("%d sandboxes were created", created)
			}
		})
	})
}

func TestToolNobodyDeclaredIsToldToTheModel(t *testing.T) {
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, nil, func(f *fixture) {
			f.upstream.then(calls(call{"call_1", "browser", `{}`}), says("sorry"))
			m := f.post(ask(map[string]any{"stream": stream})).says(t, "stop", "sorry")
			if len(m.ToolCalls) != 0 {
				t.Errorf("the client got %+v", m.ToolCalls)
			}
			if result := f.upstream.asked()[1].messages(t)[2]; result["role"] != "tool" || result["tool_call_id"] != "call_1" {
				t.Errorf("the model was told %v", result)
			}
		})
	})
}

func TestForcedChoiceHoldsForOneTurn(t *testing.T) {
	for name, choice := range map[string]any{
		"type":     map[string]any{"type": "code_interpreter"},
		"name":     map[string]any{"type": "function", "function": map[string]any{"name": "run_python"}},
		"required": "required",
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(runs("say hi"), says("done"))
				f.post(ask(map[string]any{"tool_choice": choice})).says(t, "stop", "done")
				seen := f.upstream.asked()
				first := encode(seen[0].member(t, "tool_choice"))
				want := `{"function":{"name":"run_python"},"type":"function"}`
				if name == "required" {
					want = `"required"`
				}
				if first != want {
					t.Errorf("first turn: %s", first)
				}
				if second := seen[1].member(t, "tool_choice"); second != "auto" {
					t.Errorf("second turn: %v", second)
				}
			})
		})
	}
}

func TestUsageIsSummed(t *testing.T) {
	usage := func(text string, list []call, n string) reply {
		return turn{text: text, calls: list, usage: `{"prompt_tokens":` + n + `0,"completion_tokens":` + n + `,"total_tokens":` + n + n +
			`,"prompt_tokens_details":{"cached_tokens":` + n + `}}`}.reply()
	}
	const sum = `"usage":{"prompt_tokens":60,"completion_tokens":6,"total_tokens":66,"prompt_tokens_details":{"cached_tokens":6}}`
	for name, c := range map[string]struct {
		fields map[string]any
		want   int
	}{
		"json":                   {nil, 1},
		"stream":                 {map[string]any{"stream": true}, 0},
		"stream with the option": {map[string]any{"stream": true, "stream_options": map[string]any{"include_usage": true}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(
					usage("", []call{python("call_1", "say hi")}, "1"),
					usage("", []call{python("call_2", "say hi")}, "2"),
					usage("done", nil, "3"))
				w := f.post(ask(c.fields))
				w.says(t, "stop", "done")
				if n := count(w.text(), sum); n != c.want || count(w.text(), `"usage":{`) != c.want {
					t.Errorf("%d sums, want %d, in\n%s", n, c.want, w.text())
				}
			})
		})
	}
}

func TestExecutedToolsAreShownUnlessSwitchedOff(t *testing.T) {
	for _, show := range []bool{true, false} {
		bothForms(t, func(t *testing.T, stream bool) {
			inBubble(t, func(c *handler.Config, _ *session.Limits) { c.Show = show }, func(f *fixture) {
				f.upstream.then(runs("plot"), says("done"))
				w := f.post(ask(map[string]any{"stream": stream}))
				w.says(t, "stop", "done")
				for _, text := range []string{"executed_tools", "iVBORw0KGgo=", `"chart":{"type":"bar"}`, "run_python"} {
					if got := count(w.text(), text) > 0; got != show {
						t.Errorf("%s: %v, want %v in\n%s", text, got, show, w.text())
					}
				}
				if content := f.upstream.asked()[1].messages(t)[2]["content"]; content != "[image/png, 8 bytes]" {
					t.Errorf("the model was told %q", content)
				}
			})
		})
	}
}

func TestCallOfALegacyFunctionIsTheClients(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(document(http.StatusOK, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant",`+
			`"content":null,"function_call":{"name":"g","arguments":"{}"}},"finish_reason":"function_call"}]}`))
		m := f.post(ask(map[string]any{"functions": []any{map[string]any{"name": "g", "parameters": map[string]any{}}}})).read(t)
		if m.Finish != "tool_calls" || len(m.ToolCalls) != 1 || m.ToolCalls[0].Function.Name != "g" {
			t.Errorf("the client got %+v", m)
		}
		f.upstream.wants(1)
	})
}

func TestOurToolGoesBackAsAFunction(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(document(http.StatusOK, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant",`+
			`"content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"run_python","input":"say hi"}}]},"finish_reason":"tool_calls"}]}`), says("done"))
		f.post(ask(nil)).says(t, "stop", "done")
		echo := encode(f.upstream.asked()[1].messages(t)[1]["tool_calls"])
		if want := `[{"function":{"arguments":"{\"code\":\"say hi\"}","name":"run_python"},"id":"a","type":"function"}]`; echo != want {
			t.Errorf("the echo is %s, want %s", echo, want)
		}
	})
}
