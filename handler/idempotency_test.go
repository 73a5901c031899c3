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
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// once are the headers of a request that may be sent again.
func once(key string) []string {
	return []string{"Authorization", "Bearer sk-1", "Idempotency-Key", key}
}

func TestRepeatedRequestWaitsForTheFirstAndRunsNothing(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(runs("sleep 10s"), says("done"))
		var answers [3]*response
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i] = f.post(ask(nil), once("waits")...) })
		}
		wg.Wait()
		replayed := 0
		for _, w := range answers {
			w.says(t, "stop", "done")
			if w.header.Get("Idempotent-Replayed") == "true" {
				replayed++
			}
		}
		if replayed != 2 {
			t.Errorf("%d answers were given again, want 2", replayed)
		}
		f.upstream.wants(2)
		if ran := f.sandboxes.ran(); len(ran) != 1 {
			t.Errorf("programs that ran: %q", ran)
		}
	})
}

func TestAnswerIsGivenAgainForAMinute(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(says("one"), says("two"))
		f.post(ask(nil), once("minute")...).says(t, "stop", "one")
		time.Sleep(59 * time.Second)
		f.post(ask(nil), once("minute")...).says(t, "stop", "one")
		time.Sleep(2 * time.Second)
		f.post(ask(nil), once("minute")...).says(t, "stop", "two")
	})
}

func TestKeyOfAnotherRequestIsRefused(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(says("one"))
		f.post(ask(nil), once("other")...).says(t, "stop", "one")
		f.post(ask(map[string]any{"model": "n"}), once("other")...).refuses(t, http.StatusUnprocessableEntity, "another body")
	})
}

func TestStreamIsNotGivenAgain(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(runs("sleep 10s"), says("done"))
		body := ask(map[string]any{"stream": true})
		var first *response
		var wg sync.WaitGroup
		wg.Go(func() { first = f.post(body, once("stream")...) })
		synctest.Wait()
		f.post(body, once("stream")...).refuses(t, http.StatusConflict, "streamed")
		wg.Wait()
		first.says(t, "stop", "done")
		f.post(body, once("stream")...).refuses(t, http.StatusConflict, "streamed")
	})
}

func TestFailedRequestMayBeSentAgain(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(fails(http.StatusInternalServerError), says("done"))
		if w := f.post(ask(nil), once("fails")...); w.status != http.StatusInternalServerError {
			t.Fatalf("status %d", w.status)
		}
		f.post(ask(nil), once("fails")...).says(t, "stop", "done")
	})
}

func TestKeysOfStrangersNeverMeet(t *testing.T) {
	for name, header := range map[string][]string{
		"another caller":         {"Authorization", "Bearer sk-2", "Idempotency-Key", "strangers"},
		"another credential":     append(once("strangers"), "Cookie", "a=b"),
		"an anonymous caller":    {"Idempotency-Key", "strangers"},
		"a key that is no other": once("strangers-2"),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(says("one"), says("two"), says("three"))
				f.post(ask(nil), once("strangers")...).says(t, "stop", "one")
				f.post(ask(nil), header...).says(t, "stop", "two")
				f.post(ask(map[string]any{"metadata": inSession("s")}), once("strangers")...).says(t, "stop", "three")
			})
		})
	}
}
