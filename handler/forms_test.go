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
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// Upstreams answer in the form that they have, whatever was asked for.
func TestAnswerHasTheFormThatTheClientAskedFor(t *testing.T) {
	forced := func(x turn, stream bool) reply {
		return func(w http.ResponseWriter, r *http.Request) error {
			if !stream {
				return document(http.StatusOK, x.whole(), "Content-Type", "text/event-stream")(w, r)
			}
			w.Header().Set("Content-Type", "application/json")
			for _, chunk := range append(x.chunks(), "[DONE]") {
				if err := sendEvent(w, chunk); err != nil {
					return err
				}
			}
			return nil
		}
	}
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, nil, func(f *fixture) {
			call := turn{text: "Let me see. ", calls: []call{python("call_1", "say hi")}, usage: `{"total_tokens":1}`}
			last := turn{text: "done", usage: `{"total_tokens":2}`}
			f.upstream.then(forced(call, !stream), forced(last, !stream))
			w := f.post(ask(map[string]any{"stream": stream, "stream_options": map[string]any{"include_usage": true}}))
			w.says(t, "stop", "Let me see. done")
			want := "application/json"
			if stream {
				want = "text/event-stream"
			}
			if got := w.header.Get("Content-Type"); !strings.HasPrefix(got, want) {
				t.Errorf("the content type is %q", got)
			}
			if count(w.text(), `"total_tokens":3`) != 1 {
				t.Errorf("the usage is not the sum: %s", w.text())
			}
		})
	})
}

// A turn differs from the one before by the messages at its end: what the
// client wrote stays as it was written, and caches of upstreams hit.
func TestLaterTurnsOnlyAppend(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(runs("say 1"), runs("say 2"), says("done"))
		body := ` { "x" : 1.50, "messages" : [ {"role":"user","content":"\u00e9 <&> \/"} ] ,` + "\n" +
			`"tools":[ {"type":"code_interpreter","container":{"type":"auto"}} ], "metadata":{"session_id":"s", "a":"b"}, "y":"z" } `
		f.post(body).says(t, "stop", "done")
		seen := f.upstream.asked()
		before, after, found := strings.Cut(seen[0].body, ` ] ,`+"\n")
		if !found || !strings.HasPrefix(before, ` { "x" : 1.50, "messages" : [ {"role":"user","content":"\u00e9 <&> \/"}`) ||
			!strings.HasSuffix(after, `"metadata":{"a":"b"}, "y":"z" } `) {
			t.Fatalf("the first turn is %s", seen[0].body)
		}
		for i := 1; i < len(seen); i++ {
			last := seen[i-1].body
			head := strings.TrimSuffix(last, "] ,\n"+after)
			if !strings.HasPrefix(strings.ReplaceAll(seen[i].body, " ", ""), strings.ReplaceAll(head, " ", "")) || !strings.HasSuffix(seen[i].body, "] ,\n"+after) {
				t.Errorf("turn %d is\n%s\nafter\n%s", i+1, seen[i].body, last)
			}
			if got := len(seen[i].messages(t)); got != 1+2*i {
				t.Errorf("turn %d has %d messages", i+1, got)
			}
		}
	})
}

// An answer without a call of the tool is given as it came.
func TestAnswerWithoutACallIsTheUpstreams(t *testing.T) {
	const body = "{ \"id\":\"x\", \"choices\":[ {\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"\\u00e9\",\"new\":1.0},\"finish_reason\":\"stop\"} ], \"own\":[1 ,2] }\n"
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(document(http.StatusOK, body, "X-Request-Id", "req_1"))
		w := f.post(ask(nil))
		if w.status != http.StatusOK || strings.TrimSpace(w.text()) != strings.TrimSpace(body) || w.header.Get("X-Request-Id") != "req_1" {
			t.Errorf("status %d, header %v, body\n%s", w.status, w.header, w.text())
		}
	})
}

// created is a reply with the status 201 in place of 200.
func created(next reply) reply {
	return func(w http.ResponseWriter, r *http.Request) error { return next(creating{w}, r) }
}

type creating struct{ http.ResponseWriter }

func (w creating) WriteHeader(status int) {
	if status == http.StatusOK {
		status = http.StatusCreated
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w creating) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

func (w creating) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestAnAnswerWith201IsAnAnswer(t *testing.T) {
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, nil, func(f *fixture) {
			f.upstream.then(created(runs("say hi")), created(says("done")))
			f.post(ask(map[string]any{"stream": stream})).says(t, "stop", "done")
			if n := len(f.upstream.asked()); n != 2 {
				t.Errorf("%d turns", n)
			}
		})
	})
}

func TestOneIDInAStreamOfManyTurns(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		other := func(next reply) reply {
			return func(w http.ResponseWriter, r *http.Request) error {
				return next(renaming{w}, r)
			}
		}
		f.upstream.then(turn{text: "a", calls: []call{python("call_1", "say hi")}}.reply(), other(says("b")))
		w := f.post(ask(map[string]any{"stream": true}))
		w.says(t, "stop", "ab")
		if strings.Contains(w.text(), "chatcmpl-2") || count(w.text(), `"role":"assistant"`) != 1 {
			t.Errorf("the stream shows its turns:\n%s", w.text())
		}
	})
}

// renaming gives the answers of a turn another id.
type renaming struct{ http.ResponseWriter }

func (r renaming) Write(p []byte) (int, error) {
	_, err := r.ResponseWriter.Write([]byte(strings.ReplaceAll(string(p), "chatcmpl-1", "chatcmpl-2")))
	return len(p), err
}

func (r renaming) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// reverse_proxy forwards informational answers before the answer itself.
func TestInformationalAnswersAreNoAnswers(t *testing.T) {
	hinted := func(next reply) reply {
		return func(w http.ResponseWriter, r *http.Request) error {
			w.WriteHeader(http.StatusEarlyHints)
			return next(w, r)
		}
	}
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, nil, func(f *fixture) {
			f.upstream.then(hinted(runs("say hi")), hinted(says("done")))
			f.post(ask(map[string]any{"stream": stream})).says(t, "stop", "done")
		})
	})
}

// An event is one line, however an upstream sets its JSON.
func TestAPrettyDocumentBecomesEventsOfOneLine(t *testing.T) {
	const pretty = `{
  "id": "cc-1",
  "object": "chat.completion",
  "choices": [{
    "index": 0,
    "message": {
      "role": "assistant",
      "content": null,
      "tool_calls": [{
        "id": "call_1",
        "type": "function",
        "function": {
          "name": "get_weather",
          "arguments": "{}"
        },
        "extra_content": {
          "google": { "thought_signature": "x" }
        }
      }]
    },
    "finish_reason": "tool_calls"
  }],
  "usage": {
    "prompt_tokens": 1,
    "completion_tokens_details": {
      "reasoning_tokens": 2
    }
  }
}
`
	for name, text := range map[string]string{"LF": pretty, "CRLF": strings.ReplaceAll(pretty, "\n", "\r\n")} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(document(http.StatusOK, text))
				w := f.post(ask(map[string]any{
					"stream": true, "stream_options": map[string]any{"include_usage": true},
					"tools": []any{map[string]any{"type": "code_interpreter"}, map[string]any{"type": "function", "function": map[string]any{"name": "get_weather"}}},
				}))
				for _, part := range []string{`"thought_signature"`, `"reasoning_tokens"`, "[DONE]"} {
					if count(w.text(), part) != 1 {
						t.Errorf("%s is there %d times", part, count(w.text(), part))
					}
				}
				for line := range strings.SplitSeq(w.text(), "\n") {
					if data, ok := strings.CutPrefix(line, "data: "); line != "" && (!ok || data != "[DONE]" && !json.Valid([]byte(data))) {
						t.Errorf("the line %q is no event", line)
					}
				}
			})
		})
	}
}
