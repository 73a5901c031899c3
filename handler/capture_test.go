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
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// inPieces answers with a text, a few bytes at a time.
func inPieces(text string, size int) reply {
	return func(w http.ResponseWriter, _ *http.Request) error {
		for at := 0; at < len(text); at += size {
			if _, err := io.WriteString(w, text[at:min(at+size, len(text))]); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestBlankLinesMayComeBeforeAnAnswer(t *testing.T) {
	blank := strings.Repeat("\r\n \t\n", 40_000)
	for name, start := range map[string]string{"blank lines": blank, "a byte order mark": "\xef\xbb\xbf", "a byte order mark and blank lines": "\xef\xbb\xbf" + blank} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(inPieces(start+turn{calls: []call{python("call_1", "say hi")}}.whole(), 1), inPieces(start+turn{text: "done"}.whole(), 7))
				f.post(ask(nil)).says(t, "stop", "done")
				f.upstream.wants(2)
			})
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(inPieces(start+"data: "+strings.Join(append(turn{text: "done"}.chunks(), "[DONE]"), "\n\ndata: ")+"\n\n", 3))
				f.post(ask(map[string]any{"stream": true})).says(t, "stop", "done")
			})
		})
	}
}

func TestBlankLinesBeforeAnotherFormAreTheClients(t *testing.T) {
	for name, text := range map[string]string{
		"text":               strings.Repeat("\n", 5000) + "hello",
		"text like an event": " \n datum",
	} {
		t.Run(name, func(t *testing.T) {
			for size := range 4 {
				inBubble(t, nil, func(f *fixture) {
					f.upstream.then(inPieces(text, size+1))
					if w := f.post(ask(nil)); w.status != http.StatusOK || w.text() != text {
						t.Errorf("status %d, %q", w.status, w.text())
					}
				})
			}
		})
	}
}

func TestAnswerWithNothingInItIsAnError(t *testing.T) {
	empty := `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null%s},"finish_reason":null}]}`
	for name, answer := range map[string]string{
		"no body": "", "blank lines": "\n\n \n", "half a byte order mark": "\xef\xbb",
		"no content": fmt.Sprintf(empty, ""), "reasoning alone": fmt.Sprintf(empty, `,"reasoning_content":"I think"`),
	} {
		t.Run(name, func(t *testing.T) {
			bothForms(t, func(t *testing.T, stream bool) {
				inBubble(t, nil, func(f *fixture) {
					f.upstream.then(document(http.StatusOK, answer))
					f.post(ask(map[string]any{"stream": stream})).breaksOff(t)
					f.upstream.then(runs("say hi"), document(http.StatusOK, answer), document(http.StatusOK, answer), document(http.StatusOK, answer))
					f.post(ask(map[string]any{"stream": stream})).breaksOff(t)
				})
			})
		})
	}
}

// breaksOff fails unless the answer says that the upstream's was not whole.
func (w *response) breaksOff(t *testing.T) {
	t.Helper()
	if !strings.Contains(w.text(), `"message":"The upstream `) || strings.Contains(w.text(), `"finish_reason":"`) {
		t.Errorf("status %d: %s", w.status, w.text())
	}
}

// brokenAfter answers with a stream and breaks the connection then.
func brokenAfter(stream string) reply {
	return func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream)
		panic(http.ErrAbortHandler)
	}
}

func TestConnectionMayBreakOnceTheAnswerIsOver(t *testing.T) {
	events := func(t turn) string {
		return "data: " + strings.Join(append(t.chunks(), "[DONE]"), "\n\ndata: ") + "\n\n"
	}
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, nil, func(f *fixture) {
			f.upstream.then(brokenAfter(events(turn{calls: []call{python("call_1", "say hi")}})), brokenAfter(events(turn{text: "done"})))
			f.post(ask(map[string]any{"stream": stream})).says(t, "stop", "done")
			if ran := f.sandboxes.ran(); len(ran) != 1 {
				t.Errorf("these ran: %q", ran)
			}
			f.upstream.then(brokenAfter(strings.TrimSuffix(events(turn{calls: []call{python("call_1", "say hi")}}), "data: [DONE]\n\n")))
			f.post(ask(map[string]any{"stream": stream})).breaksOff(t)
			if ran := f.sandboxes.ran(); len(ran) != 1 {
				t.Errorf("then these ran: %q", ran)
			}
		})
	})
}

func TestErrorIsNoEventStream(t *testing.T) {
	refusal := document(http.StatusBadRequest, "event: error\n"+`data: {"error":{"message":"special words"}}`+"\n\ndata: [DONE]\n\n", "Content-Type", "text/event-stream; charset=utf-8")
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, nil, func(f *fixture) {
			f.upstream.then(refusal, runs("say hi"), refusal)
			for turns := range 2 {
				w := f.post(ask(map[string]any{"stream": stream}))
				if !strings.Contains(w.text(), "special words") {
					t.Errorf("the answer is %s", w.text())
				}
				if kind := w.header.Get("Content-Type"); strings.HasPrefix(kind, "text/event-stream") != (stream && turns > 0) {
					t.Errorf("status %d with %s", w.status, kind)
				}
			}
		})
	})
}

func TestHeartbeatsDoNotKeepATurnOpen(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		var waited time.Duration
		f.upstream.then(func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, chunk := range (turn{text: "done"}).chunks() {
				if err := sendEvent(w, chunk); err != nil {
					return err
				}
			}
			begun := time.Now()
			for range 50 {
				select {
				case <-r.Context().Done():
					waited = time.Since(begun)
					return nil
				case <-time.After(200 * time.Millisecond):
				}
				if err := sendEvent(w, `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[]}`); err != nil {
					return err
				}
			}
			return nil
		})
		f.post(ask(map[string]any{"stream": true})).says(t, "stop", "done")
		if waited != 500*time.Millisecond {
			t.Errorf("the turn was over %v after its end", waited)
		}
	})
}

func TestEndlessBlankLinesAreBrokenOff(t *testing.T) {
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, nil, func(f *fixture) {
			piece := strings.Repeat("\n", 64<<10)
			sent := 0
			f.upstream.then(func(w http.ResponseWriter, _ *http.Request) error {
				for ; sent < 100; sent++ {
					if _, err := io.WriteString(w, piece); err != nil {
						return err
					}
				}
				return nil
			})
			f.post(ask(map[string]any{"stream": stream})).refuses(t, http.StatusBadGateway, "broke off")
			if sent > 16 {
				t.Errorf("%d pieces were taken", sent)
			}
		})
	})
}

func TestAnswerOfTooManyMembersIsBrokenOff(t *testing.T) {
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, nil, func(f *fixture) {
			extra := map[string]any{}
			for i := range 20_000 {
				extra[fmt.Sprintf("member_%d", i)] = i
			}
			f.upstream.then(turn{calls: []call{python("call_1", "say hi")}, extra: extra}.reply())
			status := http.StatusBadGateway
			if stream {
				status = http.StatusOK
			}
			f.post(ask(map[string]any{"stream": stream})).refuses(t, status, "broke off")
			if ran := f.sandboxes.ran(); len(ran) != 0 {
				t.Errorf("these ran: %q", ran)
			}
		})
	})
}
