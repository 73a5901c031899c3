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
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// bothForms runs a test with a JSON and with a streamed request.
func bothForms(t *testing.T, test func(t *testing.T, stream bool)) {
	t.Helper()
	for name, stream := range map[string]bool{"json": false, "stream": true} {
		t.Run(name, func(t *testing.T) { test(t, stream) })
	}
}

var transient = map[string]reply{
	"connection error": unreachable,
	"connection times out": func(http.ResponseWriter, *http.Request) error {
		return caddyhttp.Error(http.StatusGatewayTimeout, context.DeadlineExceeded)
	},
	"no handler":       nothing,
	"502":              fails(http.StatusBadGateway),
	"503":              fails(http.StatusServiceUnavailable),
	"504":              fails(http.StatusGatewayTimeout),
	"429 for a moment": fails(http.StatusTooManyRequests, "Retry-After", "1"),
	"broken off":       broken(`{"id":"chatcmpl-1","choi`),
}

func TestFollowUpIsSentAgain(t *testing.T) {
	for name, failure := range transient {
		t.Run(name, func(t *testing.T) {
			bothForms(t, func(t *testing.T, stream bool) {
				inBubble(t, nil, func(f *fixture) {
					f.upstream.then(runs("say hi"), failure, failure, says("done"))
					f.post(ask(map[string]any{"stream": stream})).says(t, "stop", "done")
					f.upstream.wants(4)
					if ran := f.sandboxes.ran(); len(ran) != 1 {
						t.Errorf("these ran: %q", ran)
					}
					seen := f.upstream.asked()
					if seen[1].body != seen[3].body {
						t.Errorf("it was not sent again as it was:\n%s\n%s", seen[1].body, seen[3].body)
					}
				})
			})
		})
	}
}

func TestFollowUpIsSentAgainAtMostTwice(t *testing.T) {
	for name, failure := range transient {
		t.Run(name, func(t *testing.T) {
			bothForms(t, func(t *testing.T, stream bool) {
				inBubble(t, nil, func(f *fixture) {
					f.upstream.then(runs("say hi"), failure, failure, failure)
					w := f.post(ask(map[string]any{"stream": stream}))
					f.upstream.wants(4)
					if w.err != nil || !stream && w.status < 400 {
						t.Errorf("status %d, error %v", w.status, w.err)
					}
					if m := w.read(t); m.Failure == nil {
						t.Errorf("the client was not told: %s", w.text())
					}
				})
			})
		})
	}
}

func TestRetryAfterDecidesWhetherAndWhen(t *testing.T) {
	for name, c := range map[string]struct {
		failure reply
		again   bool
		least   time.Duration
	}{
		"429 with 3 s":       {fails(http.StatusTooManyRequests, "Retry-After", "3"), true, 3 * time.Second},
		"429 with a minute":  {fails(http.StatusTooManyRequests, "Retry-After", "60"), false, 0},
		"429 without":        {fails(http.StatusTooManyRequests), false, 0},
		"429 with nonsense":  {fails(http.StatusTooManyRequests, "Retry-After", "soon"), false, 0},
		"503 with a minute":  {fails(http.StatusServiceUnavailable, "Retry-After", "60"), false, 0},
		"503 with 2 seconds": {fails(http.StatusServiceUnavailable, "Retry-After", "2"), true, 2 * time.Second},
		"500":                {fails(http.StatusInternalServerError), false, 0},
		"400":                {fails(http.StatusBadRequest), false, 0},
		"401":                {fails(http.StatusUnauthorized), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(runs("say hi"), c.failure)
				if c.again {
					f.upstream.then(says("done"))
				}
				w := f.post(ask(nil))
				if c.again {
					w.says(t, "stop", "done")
				} else {
					w.refuses(t, w.status, "of the upstream")
					f.upstream.wants(2)
				}
				if took := time.Since(w.start); took < c.least || took > c.least+2*time.Second {
					t.Errorf("it took %v, want about %v", took, c.least)
				}
			})
		})
	}
}

func TestFirstTurnIsPassedOnAsItComes(t *testing.T) {
	for name, failure := range transient {
		if strings.HasPrefix(name, "connection") || name == "broken off" || name == "no handler" {
			continue // there is nothing to pass on
		}
		t.Run(name, func(t *testing.T) {
			bothForms(t, func(t *testing.T, stream bool) {
				inBubble(t, nil, func(f *fixture) {
					f.upstream.then(failure)
					w := f.post(ask(map[string]any{"stream": stream}))
					f.upstream.wants(1)
					if w.status < 400 || !strings.Contains(w.text(), "of the upstream") {
						t.Errorf("status %d, body %s", w.status, w.text())
					}
					if _, created := f.sandboxes.count(); created != 0 {
						t.Errorf("%d sandboxes were created", created)
					}
				})
			})
		})
	}
}

func TestNoUpstreamAtTheFirstTurn(t *testing.T) {
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, nil, func(f *fixture) {
			f.upstream.then(unreachable, broken(`{"id":`), nothing)
			for _, text := range []string{"could not be reached", "broke off", "reverse_proxy"} {
				w := f.post(ask(map[string]any{"stream": stream}))
				w.refuses(t, http.StatusBadGateway, text)
				if strings.Contains(w.text(), "10.1.2.3") {
					t.Errorf("the answer names the upstream's address: %s", w.text())
				}
			}
			f.upstream.wants(3)
		})
	})
}

func TestRefusedEchoIsSentOnceWithoutTheField(t *testing.T) {
	refusal := document(http.StatusBadRequest, `{"error":{"message":"messages.1: reasoning_content is not supported"}}`)
	first := turn{calls: []call{python("call_1", "say hi")}, extra: map[string]any{"reasoning_content": "I think"}}.reply()
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, nil, func(f *fixture) {
			f.upstream.then(first, refusal, says("done"))
			w := f.post(ask(map[string]any{"stream": stream}))
			w.says(t, "stop", "done")
			seen := f.upstream.asked()
			if len(seen) != 3 {
				t.Fatalf("%d requests", len(seen))
			}
			if echo := seen[1].messages(t)[1]; echo["reasoning_content"] != "I think" {
				t.Errorf("the echo lacks the field: %v", echo)
			}
			if echo := seen[2].messages(t)[1]; echo["reasoning_content"] != nil || echo["tool_calls"] == nil {
				t.Errorf("the echo is still %v", echo)
			}
			if ran := f.sandboxes.ran(); len(ran) != 1 {
				t.Errorf("these ran: %q", ran)
			}
		})
	})
	t.Run("twice", func(t *testing.T) {
		inBubble(t, nil, func(f *fixture) {
			f.upstream.then(first, refusal, refusal)
			f.post(ask(nil)).refuses(t, http.StatusBadRequest, "reasoning_content is not supported")
			f.upstream.wants(3)
		})
	})
}

func TestRefusedEchoIsNotSentAgainAsItWas(t *testing.T) {
	for name, tt := range map[string]struct {
		message string
		first   turn
	}{
		"content that is none":      {"filtered by the content management policy", turn{text: "I compute."}},
		"a field that was left out": {"refusal is not supported", turn{extra: map[string]any{"refusal": nil}}},
		"a part of a name":          {"reasoning_effort is too high", turn{extra: map[string]any{"reasoning": "I think"}}},
	} {
		t.Run(name, func(t *testing.T) {
			bothForms(t, func(t *testing.T, stream bool) {
				inBubble(t, nil, func(f *fixture) {
					first := tt.first
					first.calls = []call{python("call_1", "say hi")}
					if first.text == "" {
						first.text = "I compute."
					}
					f.upstream.then(first.reply(), document(http.StatusBadRequest, `{"error":{"message":"`+tt.message+`"}}`))
					w := f.post(ask(map[string]any{"stream": stream}))
					f.upstream.wants(2)
					if !strings.Contains(w.text(), tt.message) {
						t.Errorf("the answer is %s", w.text())
					}
				})
			})
		})
	}
}

func TestRefusedFieldMayStandBehindAnEscape(t *testing.T) {
	for _, message := range []string{
		`1 validation error for Message\nreasoning_content\n  Extra inputs are not permitted`,
		`Unknown field \u0027reasoning_content\u0027`,
	} {
		inBubble(t, nil, func(f *fixture) {
			first := turn{calls: []call{python("call_1", "say hi")}, extra: map[string]any{"reasoning_content": "I think", "": "x"}}.reply()
			f.upstream.then(first, document(http.StatusBadRequest, `{"detail":"`+message+`"}`), says("done"))
			f.post(ask(nil)).says(t, "stop", "done")
		})
	}
}

func TestEachFieldThatIsRefusedIsLeftOut(t *testing.T) {
	refusal := func(name string) reply {
		return document(http.StatusBadRequest, `{"error":{"message":"`+name+` is not supported"}}`)
	}
	turn := turn{calls: []call{python("call_1", "say hi")}, extra: map[string]any{"reasoning_content": "a", "audio": "b"}}.reply()
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(turn, refusal("audio"), turn, refusal("reasoning_content"), says("done"))
		f.post(ask(nil)).says(t, "stop", "done")
		for _, echo := range f.upstream.asked()[4].messages(t) {
			if echo["audio"] != nil || echo["reasoning_content"] != nil {
				t.Errorf("the echo is still %v", echo)
			}
		}
	})
}

func TestErrorAfterARunSaysWhatWasExecuted(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(runs("x = 1"), document(http.StatusBadRequest, `{"error":{"message":"too long"}}`))
		w := f.post(ask(nil))
		if w.status != http.StatusBadRequest || count(w.text(), "too long") != 1 || count(w.text(), `"executed_tools":[{"index":0`) != 1 {
			t.Errorf("status %d: %s", w.status, w.text())
		}
	})
}
