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
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// reverse_proxy panics with http.ErrAbortHandler when an upstream dies in the
// middle of its answer.

func TestAbortInAStreamIsAnErrorEvent(t *testing.T) {
	dies := func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "text/event-stream")
		if err := sendEvent(w, turn{text: "half"}.chunks()[0]); err != nil {
			return err
		}
		panic(http.ErrAbortHandler)
	}
	for name, turns := range map[string][]reply{"first turn": {dies}, "later turn": {runs("say hi"), dies}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(turns...)
				w := f.post(ask(map[string]any{"stream": true}))
				w.refuses(t, http.StatusOK, "broke")
				if m := w.read(t); m.Content != "half" {
					t.Errorf("the text so far is %q", m.Content)
				}
				f.upstream.wants(len(turns))
			})
		})
	}
}

func TestAbortInTheMiddleOfACallRunsNothing(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "text/event-stream")
			if err := sendEvent(w, turn{calls: []call{python("call_1", "say hi")}}.chunks()[0]); err != nil {
				return err
			}
			panic(http.ErrAbortHandler)
		})
		f.post(ask(map[string]any{"stream": true})).refuses(t, http.StatusOK, "broke")
		if ran := f.sandboxes.ran(); len(ran) != 0 {
			t.Errorf("these ran: %q", ran)
		}
	})
}

// An answer that is none of ours goes out as it comes: when it breaks off, the
// client's connection does.
func TestAbortOfAForeignAnswerGoesOn(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "<html>")
			panic(http.ErrAbortHandler)
		})
		w := newResponse()
		func() {
			defer func() {
				if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // the value itself is the signal
					t.Errorf("it panicked with %v", p)
				}
			}()
			f.serve(w, request(context.Background(), w, ask(nil)))
		}()
		if w.status != http.StatusBadGateway || w.text() != "<html>" {
			t.Errorf("status %d, body %q", w.status, w.text())
		}
	})
}

func TestOtherPanicsGoOnAndGiveTheSandboxBack(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(runs("say hi"), func(http.ResponseWriter, *http.Request) error { panic("a bug behind us") })
		w := newResponse()
		defer func() {
			if p := recover(); p != "a bug behind us" {
				t.Errorf("it panicked with %v", p)
			}
		}()
		f.serve(w, request(context.Background(), w, ask(nil)))
	})
}

func TestHTMLInsteadOfAnAnswer(t *testing.T) {
	page := func(status int) reply {
		return document(status, "<html>sorry</html>", "Content-Type", "text/html")
	}
	t.Run("first turn", func(t *testing.T) {
		inBubble(t, nil, func(f *fixture) {
			f.upstream.then(page(http.StatusBadGateway), page(http.StatusOK))
			for _, status := range []int{http.StatusBadGateway, http.StatusOK} {
				w := f.post(ask(map[string]any{"stream": true}))
				if w.status != status || w.text() != "<html>sorry</html>" || w.header.Get("Content-Type") != "text/html" {
					t.Errorf("status %d, %q, body %q", w.status, w.header.Get("Content-Type"), w.text())
				}
			}
		})
	})
	for status, text := range map[int]string{
		http.StatusInternalServerError: "status 500 Internal Server Error.",
		520:                            "status 520.",
		http.StatusOK:                  "no chat completion",
	} {
		t.Run(fmt.Sprintf("later turn of a stream, %d", status), func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(runs("say hi"), page(status))
				w := f.post(ask(map[string]any{"stream": true}))
				w.refuses(t, http.StatusOK, text)
				if strings.Contains(w.text(), "<html>") {
					t.Errorf("the page is in the stream: %s", w.text())
				}
			})
		})
	}
}

// Headers that promise a stream are passed on before there is anything of it.
func TestHTMLInsteadOfAStreamThatHasBegun(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			if err := http.NewResponseController(w).Flush(); err != nil {
				return err
			}
			return after(25*time.Second, document(http.StatusOK, "<html>sorry</html>"))(w, r)
		})
		w := f.post(ask(map[string]any{"stream": true}))
		w.refuses(t, http.StatusOK, "no chat completion")
		if strings.Contains(w.text(), "<html>") {
			t.Errorf("the page is in the stream: %s", w.text())
		}
	})
}

// The client knows nothing of later turns: a redirect or an empty answer there
// is none to its request.
func TestLaterTurnWithoutAnErrorStatusIsAnError(t *testing.T) {
	for _, status := range []int{http.StatusNoContent, http.StatusPartialContent, http.StatusTemporaryRedirect, http.StatusNotModified} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			bothForms(t, func(t *testing.T, stream bool) {
				inBubble(t, nil, func(f *fixture) {
					f.upstream.then(runs("say hi"), document(status, "", "Location", "http://elsewhere.test/"))
					w := f.post(ask(map[string]any{"stream": stream}))
					want := http.StatusBadGateway
					if stream {
						want = http.StatusOK
					}
					w.refuses(t, want, fmt.Sprintf("status %d", status))
					if got := w.header.Get("Location"); got != "" {
						t.Errorf("the client is sent to %s", got)
					}
				})
			})
		})
	}
}

// The client's connection fails while the stream is written.
func TestWritesThatFailEndTheRequest(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(runs("say hi"))
		w := newResponse()
		w.gone = true
		f.serve(w, request(context.Background(), w, ask(map[string]any{"stream": true})))
		f.upstream.wants(1)
		if ran := f.sandboxes.ran(); len(ran) != 0 {
			t.Errorf("these ran: %q", ran)
		}
	})
}

// The directive abort panics before anything was written.
func TestAbortOfAHandlerBehindIsAnAbort(t *testing.T) {
	aborts := func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }
	for name, turns := range map[string][]reply{"first turn": {aborts}, "later turn": {runs("say hi"), aborts}} {
		bothForms(t, func(t *testing.T, stream bool) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(turns...)
				defer func() {
					if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // the value itself is the signal
						t.Errorf("%s: the handler panics with %v", name, p)
					}
				}()
				f.post(ask(map[string]any{"stream": stream}))
			})
		})
	}
}

// What the directive error says is for Caddy to answer, if nothing was run.
func TestErrorOfAHandlerBehindIsCaddys(t *testing.T) {
	forbids := func(http.ResponseWriter, *http.Request) error {
		return caddyhttp.Error(http.StatusForbidden, errors.New("forbidden by policy"))
	}
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, nil, func(f *fixture) {
			f.upstream.then(forbids)
			w := f.post(ask(map[string]any{"stream": stream}))
			var known caddyhttp.HandlerError
			if !errors.As(w.err, &known) || known.StatusCode != http.StatusForbidden || w.status != 0 {
				t.Errorf("the handler returned %v and wrote status %d", w.err, w.status)
			}
			f.upstream.then(runs("say hi"), forbids)
			w = f.post(ask(map[string]any{"stream": stream}))
			if w.err != nil || !strings.Contains(w.text(), "does not let a further request") {
				t.Errorf("in a later turn: %v %s", w.err, w.text())
			}
		})
	})
}
