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
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

func TestRoundsEndWithARequestForNoTools(t *testing.T) {
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, func(c *handler.Config, _ *session.Limits) { c.MaxRounds = 2 }, func(f *fixture) {
			f.upstream.always = runs("say again")
			m := f.post(ask(map[string]any{"stream": stream})).says(t, "stop", "")
			if len(m.ToolCalls) != 0 {
				t.Errorf("the client got calls: %v", m.ToolCalls)
			}
			f.upstream.wants(3)
			for i, want := range []any{nil, nil, "none"} {
				if got := f.upstream.asked()[i].member(t, "tool_choice"); got != want {
					t.Errorf("turn %d: tool_choice %v, want %v", i+1, got, want)
				}
				if f.upstream.asked()[i].member(t, "tools") == nil {
					t.Errorf("turn %d is without tools", i+1)
				}
			}
			if ran := f.sandboxes.ran(); len(ran) != 2 {
				t.Errorf("these ran: %q", ran)
			}
		})
	})
}

func TestAnswerAfterTheLastRoundIsGiven(t *testing.T) {
	inBubble(t, func(c *handler.Config, _ *session.Limits) { c.MaxRounds = 1 }, func(f *fixture) {
		f.upstream.then(runs("say hi"), turn{text: "done", calls: []call{python("call_2", "say more")}}.reply())
		f.post(ask(nil)).says(t, "stop", "done")
		if ran := f.sandboxes.ran(); len(ran) != 1 {
			t.Errorf("these ran: %q", ran)
		}
	})
}

func TestSameFailureThreeTimesIsTheLast(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.always = runs("raise no such thing")
		f.post(ask(nil)).says(t, "stop", "")
		f.upstream.wants(4)
		if got := f.upstream.asked()[3].member(t, "tool_choice"); got != "none" {
			t.Errorf("tool_choice %v", got)
		}
	})
	t.Run("not when one succeeds", func(t *testing.T) {
		inBubble(t, nil, func(f *fixture) {
			for range 3 {
				f.upstream.then(runs("raise no"), runs("raise no"), runs("say yes"))
			}
			f.upstream.then(says("done"))
			f.post(ask(nil)).says(t, "stop", "done")
			f.upstream.wants(10)
		})
	})
}

// A model may call again and again what nobody has, or without a program.
func TestSameBadCallThreeTimesIsTheLast(t *testing.T) {
	for name, bad := range map[string]call{
		"a tool that nobody has": {"call_1", "no_such_tool", `{"a":1}`},
		"no program":             {"call_1", "run_python", `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.always = calls(bad)
				f.post(ask(nil)).says(t, "stop", "")
				f.upstream.wants(4)
				if got := f.upstream.asked()[3].member(t, "tool_choice"); got != "none" {
					t.Errorf("tool_choice %v", got)
				}
			})
		})
	}
}

// Some upstreams call tools although the client has asked for none.
func TestNothingRunsWhenTheClientWantsNoTools(t *testing.T) {
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, nil, func(f *fixture) {
			f.upstream.then(turn{text: "hello", calls: []call{python("call_1", "say hi")}}.reply())
			m := f.post(ask(map[string]any{"stream": stream, "tool_choice": "none"})).says(t, "stop", "hello")
			if len(m.ToolCalls) != 0 {
				t.Errorf("the client got calls: %v", m.ToolCalls)
			}
			if got := f.upstream.asked()[0].member(t, "tool_choice"); got != "none" {
				t.Errorf("tool_choice %v went upstream", got)
			}
			if _, created := f.sandboxes.count(); created != 0 {
				t.Errorf("%d sandboxes were created", created)
			}
		})
	})
}

// What a stream says is held to look for calls in it, so it has an end.
func TestEndlessAnswerIsBrokenOff(t *testing.T) {
	const piece = 1 << 20
	for name, delta := range map[string]string{
		"text":      `{"content":"%s"}`,
		"arguments": `{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"run_python","arguments":"%s"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				sent := 0
				f.upstream.then(func(w http.ResponseWriter, _ *http.Request) error {
					chunk := `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` +
						strings.Replace(delta, "%s", strings.Repeat("a", piece), 1) + `,"finish_reason":null}]}`
					for ; sent < 100; sent++ {
						if err := sendEvent(w, chunk); err != nil {
							return err
						}
					}
					return nil
				})
				f.post(ask(nil)).refuses(t, http.StatusBadGateway, "broke off")
				if sent > 64 {
					t.Errorf("%d pieces were taken", sent)
				}
				if ran := f.sandboxes.ran(); len(ran) != 0 {
					t.Errorf("these ran: %d", len(ran))
				}
			})
		})
	}
}

func TestAnswerOfTooManyCallsIsBrokenOff(t *testing.T) {
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, nil, func(f *fixture) {
			var list []call
			for i := range 1001 {
				list = append(list, python(fmt.Sprintf("call_%d", i), "say hi"))
			}
			f.upstream.then(calls(list...))
			status := http.StatusBadGateway
			if stream {
				status = http.StatusOK
			}
			f.post(ask(map[string]any{"stream": stream})).refuses(t, status, "broke off")
			if ran := f.sandboxes.ran(); len(ran) != 0 {
				t.Errorf("%d programs ran", len(ran))
			}
		})
	})
}

func TestCutAnswersDoNotRunCode(t *testing.T) {
	for _, reason := range []string{"length", "content_filter"} {
		bothForms(t, func(t *testing.T, stream bool) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(turn{text: "so far", calls: []call{python("call_1", "say hi")}, finish: reason}.reply())
				f.post(ask(map[string]any{"stream": stream})).says(t, reason, "so far")
				if ran := f.sandboxes.ran(); len(ran) != 0 {
					t.Errorf("these ran: %q", ran)
				}
			})
		})
	}
}

// The end of a turn is known before an upstream ends its stream.
func TestHangingUpstreamIsGivenUpAfterItsFinish(t *testing.T) {
	for name, c := range map[string]struct {
		turn turn
		wait time.Duration
	}{
		"finish_reason":           {turn{text: "done", hang: true}, 500 * time.Millisecond},
		"finish_reason and usage": {turn{text: "done", hang: true, usage: `{"total_tokens":3}`}, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(turn{calls: []call{python("call_1", "say hi")}, hang: true}.reply(), c.turn.reply())
				w := f.post(ask(map[string]any{"stream": true}))
				w.says(t, "stop", "done")
				if took, want := time.Since(w.start), 500*time.Millisecond+c.wait; took < want || took > want+50*time.Millisecond {
					t.Errorf("it took %v, want %v", took, want)
				}
			})
		})
	}
}

// falters is an upstream that stops in the middle of its answer.
func falters(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "text/event-stream")
	if err := sendEvent(w, turn{text: "half"}.chunks()[0]); err != nil {
		return err
	}
	return silent(w, r)
}

func TestRequestTimeoutEndsEverything(t *testing.T) {
	for name, turns := range map[string][]reply{
		"upstream silent at first":   {silent},
		"upstream falters at first":  {falters},
		"upstream falters later":     {runs("say hi"), falters},
		"upstream silent afterwards": {runs("say hi"), silent},
		"code runs":                  {runs("sleep 50s")},
	} {
		t.Run(name, func(t *testing.T) {
			bothForms(t, func(t *testing.T, stream bool) {
				inBubble(t, func(c *handler.Config, _ *session.Limits) { c.RequestTimeout = 30 * time.Second }, func(f *fixture) {
					f.upstream.then(turns...)
					w := f.post(ask(map[string]any{"stream": stream}))
					if took := time.Since(w.start); took < 30*time.Second || took > 31*time.Second {
						t.Errorf("it took %v", took)
					}
					want := http.StatusGatewayTimeout
					if stream && name != "upstream silent at first" {
						want = http.StatusOK // and the error is in the stream
					}
					w.refuses(t, want, "longer than the 30s")
				})
			})
		})
	}
}

func TestExecutionTimeoutIsForTheModel(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(runs("say before\nsleep 1h"), says("too long"))
		f.post(ask(nil)).says(t, "stop", "too long")
		messages := f.upstream.asked()[1].messages(t)
		if got := messages[2]["content"].(string); !strings.Contains(got, "before") || !strings.Contains(got, "timed out") {
			t.Errorf("the model was told %q", got)
		}
	})
}

func TestNoSandboxIsForTheModel(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.sandboxes.refuse = true
		f.upstream.then(runs("say hi"), says("sorry"))
		f.post(ask(nil)).says(t, "stop", "sorry")
		if got := f.upstream.asked()[1].messages(t)[2]["content"].(string); !strings.Contains(got, "no Python sandbox is available") {
			t.Errorf("the model was told %q", got)
		}
	})
}

// gone is a request whose client leaves after a while.
func gone(t *testing.T, f *fixture, after time.Duration, stream bool) *response {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	ctx, leave := context.WithCancel(ctx)
	timer := time.AfterFunc(after, leave)
	defer timer.Stop()
	w := newResponse()
	f.serve(w, request(ctx, w, ask(map[string]any{"stream": stream})))
	if took := time.Since(w.start); took > after+time.Second {
		t.Errorf("the request went on for %v", took-after)
	}
	return w
}

func TestClientThatLeavesEndsItAll(t *testing.T) {
	for name, turns := range map[string][]reply{
		"upstream silent at first":   {silent},
		"upstream silent afterwards": {runs("say hi"), silent},
		"code runs":                  {runs("sleep 50s")},
	} {
		t.Run(name, func(t *testing.T) {
			bothForms(t, func(t *testing.T, stream bool) {
				inBubble(t, nil, func(f *fixture) {
					f.upstream.then(turns...)
					if w := gone(t, f, 5*time.Second, stream); w.err != nil {
						t.Errorf("error %v", w.err)
					}
				})
			})
		})
	}
}

func (f *fixture) alive(t *testing.T, want int) {
	t.Helper()
	synctest.Wait()
	if alive, created := f.sandboxes.count(); alive != want || created != 1 {
		t.Errorf("%d of %d sandboxes are alive, want %d of 1", alive, created, want)
	}
}

func TestSandboxIsGivenBackBeforeTheAnswerIsWritten(t *testing.T) {
	for name, last := range map[string]reply{"answer": says("the end"), "error": document(http.StatusBadRequest, `{"error":{"message":"the end"}}`)} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(runs("x = 1"), last)
				stuck(f, "the end", ask(nil), func() { f.alive(t, 0) })
			})
		})
	}
}

func TestClientThatDoesNotReadKeepsNoSandboxBeyondTheRequest(t *testing.T) {
	inBubble(t, func(c *handler.Config, _ *session.Limits) { c.RequestTimeout, c.Keepalive = time.Minute, time.Hour }, func(f *fixture) {
		f.upstream.then(runs("x = 1"), says("the end"))
		stuck(f, "the end", ask(map[string]any{"stream": true}), func() {
			time.Sleep(time.Minute)
			f.alive(t, 1)
			time.Sleep(10 * time.Second)
			f.alive(t, 0)
		})
	})
}
