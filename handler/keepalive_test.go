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
	"strings"
	"testing"
	"time"
)

// comments returns the times of the keep-alives, and checks that each is a
// comment line on its own, between two events.
func (w *response) comments(t *testing.T) []time.Duration {
	t.Helper()
	var times []time.Duration
	before := ""
	for _, one := range w.writes {
		if strings.Contains(one.text, "keep-alive") {
			times = append(times, one.after)
			if one.text != ": keep-alive\n" {
				t.Errorf("a keep-alive of %q", one.text)
			}
			if before != "" && !strings.HasSuffix(before, "\n\n") && !strings.HasSuffix(before, ": keep-alive\n") {
				t.Errorf("a keep-alive after %q", before)
			}
		}
		if one.text != "" {
			before = one.text
		}
	}
	return times
}

func wantTimes(t *testing.T, got []time.Duration, want ...time.Duration) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("keep-alives at %v, want %v", got, want)
	}
	for i := range got {
		if d := got[i] - want[i]; d < 0 || d > time.Second {
			t.Errorf("keep-alives at %v, want %v", got, want)
		}
	}
}

func TestKeepAliveWhileCodeRuns(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(runs("sleep 35s"), says("done"))
		w := f.post(ask(map[string]any{"stream": true}))
		w.says(t, "stop", "done")
		wantTimes(t, w.comments(t), 10*time.Second, 20*time.Second, 30*time.Second)
	})
}

func TestKeepAliveWhileATurnIsSilent(t *testing.T) {
	flushing := func(flush func(http.ResponseWriter) error) reply {
		return func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			if err := flush(w); err != nil {
				return err
			}
			return after(25*time.Second, says("done"))(w, r)
		}
	}
	controller := func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }
	flusher := func(w http.ResponseWriter) error {
		w.(http.Flusher).Flush()
		return nil
	}
	for name, c := range map[string]struct {
		turns []reply
		want  []time.Duration
	}{
		"headers only at first": {[]reply{flushing(controller)}, []time.Duration{10 * time.Second, 20 * time.Second}},
		"headers by a Flusher":  {[]reply{flushing(flusher)}, []time.Duration{10 * time.Second, 20 * time.Second}},
		"nothing at first":      {[]reply{after(25*time.Second, says("done"))}, nil},
		"nothing afterwards":    {[]reply{runs("say hi"), after(25*time.Second, says("done"))}, []time.Duration{10 * time.Second, 20 * time.Second}},
		"headers afterwards":    {[]reply{runs("say hi"), after(9*time.Second, flushing(controller))}, []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(c.turns...)
				w := f.post(ask(map[string]any{"stream": true}))
				w.says(t, "stop", "done")
				wantTimes(t, w.comments(t), c.want...)
			})
		})
	}
}

func TestKeepAliveWhileCodeWaits(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.always = runsOnce("sleep 20s")
		body := ask(map[string]any{"stream": true, "metadata": inSession("keepalive")})
		first := make(chan struct{})
		go func() {
			defer close(first)
			f.post(body, "Authorization", "Bearer sk-a").says(t, "stop", "done")
		}()
		w := f.post(body, "Authorization", "Bearer sk-a")
		w.says(t, "stop", "done")
		<-first
		wantTimes(t, w.comments(t)[:1], 10*time.Second)
	})
}

func TestNoKeepAliveOnJSON(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(runs("sleep 35s"), says("done"))
		w := f.post(ask(nil))
		w.says(t, "stop", "done")
		if times := w.comments(t); len(times) != 0 || len(w.writes) != 1 {
			t.Errorf("%d writes, keep-alives at %v", len(w.writes), times)
		}
	})
}

func TestStreamArrivesAsItIsMade(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(slowly("a", "b", "c"))
		w := f.post(ask(map[string]any{"stream": true}))
		w.says(t, "stop", "abc")
		for i, text := range []string{"a", "b", "c"} {
			var at time.Duration = -1
			for _, one := range w.writes {
				if strings.Contains(one.text, `"content":"`+text+`"`) {
					at = one.after
				}
			}
			if at != time.Duration(i)*time.Second {
				t.Errorf("%q came after %v, want %d s", text, at, i)
			}
		}
	})
}

// slowly streams one piece of text a second.
func slowly(texts ...string) reply {
	return func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, text := range texts {
			if err := sendEvent(w, turn{text: text}.chunks()[0]); err != nil {
				return err
			}
			time.Sleep(time.Second)
		}
		if err := sendEvent(w, turn{}.chunks()[1]); err != nil {
			return err
		}
		return sendEvent(w, "[DONE]")
	}
}

func TestAProgramIsToldOfWhileItRuns(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(runs("sleep 5s"), says("done"))
		w := f.post(ask(map[string]any{"stream": true}))
		w.says(t, "stop", "done")
		told := w.telling(`"executed_tools"`)
		if len(told) != 2 || told[0].after > 50*time.Millisecond || told[1].after < 5*time.Second || told[1].after > 5*time.Second+50*time.Millisecond {
			t.Errorf("told of the program in %v", told)
		}
	})
}

func TestProgramsThatAreDoneAtOnceShareAWrite(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(runs("say 1"), runs("say 2"), after(time.Second, says("done")))
		w := f.post(ask(map[string]any{"stream": true}))
		w.says(t, "stop", "done")
		told := w.telling(`"executed_tools"`)
		if len(told) != 1 || count(told[0].text, `"executed_tools"`) != 4 || told[0].after > 50*time.Millisecond {
			t.Errorf("told of the programs in %v", told)
		}
	})
}

func TestAPictureDoesNotWait(t *testing.T) {
	inBubble(t, nil, func(f *fixture) {
		f.upstream.then(runs("say "+strings.Repeat("x", 5000)), says("done"))
		w := f.post(ask(map[string]any{"stream": true}))
		w.says(t, "stop", "done")
		if told := w.telling(`"output"`); len(told) != 1 || strings.Contains(told[0].text, "[DONE]") {
			t.Errorf("told of the output in %v", told)
		}
	})
}

// telling returns the writes that have a text.
func (w *response) telling(text string) (list []written) {
	for _, one := range w.writes {
		if strings.Contains(one.text, text) {
			list = append(list, one)
		}
	}
	return list
}
