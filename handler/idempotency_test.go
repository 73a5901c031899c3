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
	"testing/synctest"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// once is what a client sends with a request that it may repeat.
func once(more ...string) []string {
	return append([]string{"Idempotency-Key", "k", "Authorization", "Bearer sk-a"}, more...)
}

// rans checks how many programs ran.
func (f *fixture) rans(n int) {
	f.t.Helper()
	if ran := f.sandboxes.ran(); len(ran) != n {
		f.t.Errorf("%d programs ran, want %d: %q", len(ran), n, ran)
	}
}

func TestRepeatedRequestGetsTheSameAnswer(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.always = runsOnce("sleep 5s")
		answers := make(chan *response, 3)
		for range cap(answers) { // while it runs
			go func() { answers <- f.post(ask(nil), once()...) }()
		}
		body, replayed := "", 0
		for range cap(answers) {
			w := <-answers
			w.says(t, "stop", "done")
			if body != "" && w.text() != body {
				t.Errorf("another answer:\n%s\n%s", body, w.text())
			}
			body = w.text()
			if w.header.Get("Idempotent-Replayed") != "" {
				replayed++
			}
		}
		time.Sleep(59 * time.Second) // and afterwards
		if w := f.post(ask(nil), once()...); w.text() != body {
			t.Errorf("another answer:\n%s\n%s", body, w.text())
		}
		if replayed != 2 {
			t.Errorf("%d answers were given again", replayed)
		}
		f.rans(1)
		time.Sleep(2 * time.Second)
		f.post(ask(nil), once()...).says(t, "stop", "done")
		f.rans(2)
	})
}

func TestAnswersAreNotKeptPastTheirTime(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(says("done"))
		f.post(ask(nil), once()...)
		if handler.Kept() == 0 {
			t.Error("nothing is kept")
		}
		time.Sleep(time.Minute + time.Second)
		if n := handler.Kept(); n != 0 {
			t.Errorf("%d bytes are still kept", n)
		}
	})
}

func TestRequestsThatRepeatNothing(t *testing.T) {
	for name, c := range map[string]struct{ one, other []string }{
		"another key":        {once(), []string{"Idempotency-Key", "l", "Authorization", "Bearer sk-a"}},
		"another caller":     {once(), []string{"Idempotency-Key", "k", "Authorization", "Bearer sk-b"}},
		"another credential": {once(), once("Openai-Organization", "o")},
		"nobody":             {[]string{"Idempotency-Key", "k"}, []string{"Idempotency-Key", "k"}},
		"no key":             {[]string{"Authorization", "Bearer sk-a"}, []string{"Authorization", "Bearer sk-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.always = runsOnce("say hi")
				f.post(ask(nil), c.one...).says(t, "stop", "done")
				f.post(ask(nil), c.other...).says(t, "stop", "done")
				f.rans(2)
			})
		})
	}
	t.Run("another session of a placeholder", func(t *testing.T) {
		edit := func(c *handler.Config, _ *session.Limits) { c.SessionID = "{http.request.header.X-Session}" }
		inBubble(t, edit, func(f *fixture) {
			f.upstream.always = runsOnce("say hi")
			f.post(ask(nil), once("X-Session", "one")...).says(t, "stop", "done")
			f.post(ask(nil), once("X-Session", "two")...).says(t, "stop", "done")
			f.rans(2)
		})
	})
}

func TestKeyIsForOneRequest(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.always = runsOnce("say hi")
		f.post(ask(nil), once()...).says(t, "stop", "done")
		f.post(ask(map[string]any{"temperature": 1}), once()...).refuses(t, http.StatusUnprocessableEntity, "another body")
		f.post(ask(nil), "Idempotency-Key", strings.Repeat("k", 256), "Api-Key", "a").refuses(t, http.StatusBadRequest, "255 bytes")
		f.rans(1)
	})
}

// outer is a handler in front of ours that adds to a header when it goes out, as
// encode does, and changes what is there, as the replacements of header do.
type outer struct {
	*response
	vary string
}

func (o outer) WriteHeader(status int) {
	o.Header()["Vary"][0] += o.vary
	o.Header().Add("Vary", o.vary)
	o.response.WriteHeader(status)
}

func TestAnswersThatAreTheSameHaveTheirOwnHeaders(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(func(w http.ResponseWriter, r *http.Request) error {
			for _, name := range []string{"Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers"} {
				w.Header().Add("Vary", name) // leaves room for one more
			}
			return says("done")(w, r)
		})
		values := []string{"first", "second", "third"}
		var answers []*response
		for _, value := range values {
			w := newResponse()
			r := request(context.Background(), w, ask(nil), once()...)
			if err := f.h.ServeHTTP(outer{w, value}, r, f.upstream); err != nil {
				t.Fatal(err)
			}
			answers = append(answers, w)
		}
		for i, value := range values {
			if got := answers[i].header["Vary"]; len(got) != 4 || got[0] != "Origin"+value || got[3] != value {
				t.Errorf("the header of the %s answer is %q", value, got)
			}
		}
	})
}

// A repetition may come because the first connection does not get on.
func TestRepetitionDoesNotWaitForAClientThatDoesNotRead(t *testing.T) {
	repeat := func(f *fixture) *response {
		f.t.Helper()
		ctx, leave := context.WithTimeout(context.Background(), time.Minute)
		defer leave()
		w := newResponse()
		f.serve(w, request(ctx, w, ask(nil), once()...))
		w.says(f.t, "stop", "done")
		return w
	}
	t.Run("an answer", func(t *testing.T) {
		inBubble(t, nil, func(f *fixture) {
			f.upstream.always = runsOnce("say hi")
			stuck(f, "done", ask(nil), func() { repeat(f) }, once()...)
			repeat(f)
			f.rans(1)
		})
	})
	for name, failure := range map[string][]reply{
		"an error":            {fails(http.StatusBadRequest)},
		"an error in the end": {runs("say hi"), fails(http.StatusBadRequest)},
		"an error in a stream": {runs("say hi"), func(w http.ResponseWriter, _ *http.Request) error {
			return sendEvent(w, `{"error":{"message":"overloaded"}}`)
		}},
		"half an answer": {runs("say hi"), func(w http.ResponseWriter, _ *http.Request) error {
			_ = sendEvent(w, turn{text: "do"}.chunks()[0])
			panic(http.ErrAbortHandler)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(failure...)
				f.upstream.always = says("done")
				stuck(f, "error", ask(nil), func() { repeat(f) }, once()...)
				if w := repeat(f); w.header.Get("Idempotent-Replayed") == "" {
					t.Error("the end of the first one ended the second one's answer")
				}
			})
		})
	}
}

func TestStreamIsNotGivenAgain(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.always = runsOnce("sleep 5s")
		ended := make(chan struct{})
		body := ask(map[string]any{"stream": true})
		go func() {
			defer close(ended)
			f.post(body, once()...).says(t, "stop", "done")
		}()
		synctest.Wait()
		f.post(body, once()...).refuses(t, http.StatusConflict, "cannot be given again")
		<-ended
		f.post(body, once()...).refuses(t, http.StatusConflict, "cannot be given again")
		f.rans(1)
	})
}

// What failed has not been done: the next request with the key does it.
func TestFailureIsNotKept(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(fails(http.StatusInternalServerError))
		f.post(ask(nil), once()...).refuses(t, http.StatusInternalServerError, "of the upstream")
		f.upstream.then(runs("say hi"), says("done"))
		f.post(ask(nil), once()...).says(t, "stop", "done")
		f.rans(1)
	})
	t.Run("while the next one waits", func(t *testing.T) {
		inBubble(t, nil, func(f *fixture) {
			f.upstream.then(after(time.Second, fails(http.StatusInternalServerError)))
			first := make(chan *response, 1)
			go func() { first <- f.post(ask(nil), once()...) }()
			synctest.Wait()
			f.upstream.then(runs("say hi"), says("done"))
			f.post(ask(nil), once()...).says(t, "stop", "done")
			(<-first).refuses(t, http.StatusInternalServerError, "of the upstream")
			f.rans(1)
		})
	})
	t.Run("after a panic", func(t *testing.T) {
		inBubble(t, nil, func(f *fixture) {
			f.upstream.then(func(http.ResponseWriter, *http.Request) error { panic("a bug behind us") })
			func() {
				defer func() { _ = recover() }()
				f.post(ask(nil), once()...)
			}()
			f.upstream.then(runs("say hi"), says("done"))
			f.post(ask(nil), once()...).says(t, "stop", "done")
		})
	})
}

func TestClientThatLeavesWhileItWaitsForAnAnswer(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.always = runsOnce("sleep 20s")
		first := make(chan *response, 1)
		go func() { first <- f.post(ask(nil), once()...) }()
		synctest.Wait()
		ctx, leave := context.WithTimeout(context.Background(), time.Second)
		defer leave()
		w := newResponse()
		f.serve(w, request(ctx, w, ask(nil), once()...))
		if took := time.Since(w.start); took != time.Second || w.status != 0 || w.err != nil {
			t.Errorf("after %v status %d, error %v", took, w.status, w.err)
		}
		(<-first).says(t, "stop", "done")
		f.rans(1)
	})
}
