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

package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// eventsOf returns the events of a stream that comes in pieces of the given size,
// 0 for at once.
func eventsOf(t testing.TB, stream string, cut int) []string {
	t.Helper()
	var s Splitter
	var events []string
	emit := func(ev *Event) error {
		events = append(events, show(ev))
		return nil
	}
	for rest := []byte(stream); len(rest) > 0; {
		n := len(rest)
		if cut > 0 {
			n = min(cut, n)
		}
		p := slices.Clone(rest[:n])
		if err := s.Feed(p, emit); err != nil {
			t.Fatalf("Feed: %v", err)
		}
		clear(p) // what was fed may be used again
		rest = rest[n:]
	}
	if err := s.Close(emit); err != nil {
		t.Fatalf("Close: %v", err)
	}
	return events
}

// show writes an event down: its name, data and error.
func show(ev *Event) string {
	s := string(ev.Data)
	if !ev.HasData {
		s = "-"
	}
	if len(ev.Name) > 0 {
		s = string(ev.Name) + "> " + s
	}
	if len(ev.Error) > 0 {
		s += " !" + string(ev.Error)
	}
	return s
}

// simpleEvents is the format once more, for a stream that is all there.
func simpleEvents(stream string) []string {
	stream = strings.TrimPrefix(stream, "\xef\xbb\xbf")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	var events []string
	var ev Event
	filled := false
	end := func() {
		if filled {
			events = append(events, show(&ev))
		}
		ev, filled = Event{}, false
	}
	for line := range strings.SplitSeq(stream, "\n") {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			end()
		case name == "data":
			for strings.HasPrefix(value, "data:") {
				value = strings.TrimPrefix(value[5:], " ")
			}
			before := strings.TrimRight(string(ev.Data), " \t")
			if ev.HasData && strings.HasSuffix(before, "}") && (strings.HasPrefix(value, "{") || isDone([]byte(value))) {
				end()
			}
			if ev.HasData {
				ev.Data = append(ev.Data, '\n')
			}
			ev.Data, ev.HasData, filled = append(ev.Data, value...), true, true
		case name == "event":
			ev.Name, filled = []byte(value), true
		case name == "error":
			ev.Error, filled = []byte(value), true
		}
	}
	end()
	return events
}

var streams = []struct {
	name, stream string
	want         []string
}{
	{"events", "data: a\n\ndata: b\n\n", []string{"a", "b"}},
	{"no space", "data:a\n\ndata:  b\n\n", []string{"a", " b"}},
	{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
	{"CR", "data: a\r\rdata: b\r\r", []string{"a", "b"}},
	{"mixed line ends", "data: a\r\n\ndata: b\n\r\ndata: c\r\rdata: d\n\r", []string{"a", "b", "c", "d"}},
	{"no blank line at the end", "data: a\n\ndata: b", []string{"a", "b"}},
	{"comments", ": OPENROUTER PROCESSING\n\ndata: a\n: x\n\n:\n\n", []string{"a"}},
	{"several data lines", "data: {\ndata: \"a\":\ndata: 1}\n\n", []string{"{\n\"a\":\n1}"}},
	{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []string{"a"}},
	{"byte order mark in the middle", "data: a\n\n\xef\xbb\xbfdata: b\n\n", []string{"a"}},
	{"other fields", "id: 1\nevent: chunk\nretry: 5\ndata: a\n\n", []string{"chunk> a"}},
	{"pings", "event: ping\n\nevent: ping\ndata:\n\ndata\n\n", []string{"ping> -", "ping> ", ""}},
	{"an error as a field", "error: {\"code\":500}\n\n", []string{"- !{\"code\":500}"}},
	{"blank lines without end", "\n\n\r\n\r\ndata: a\n\n\n\n\n", []string{"a"}},
	{"NUL bytes", "data: a\x00b\n\x00\n\n", []string{"a\x00b"}},
	{"blank lines left out", "data: {\"a\":1}\ndata: {\"b\":2} \ndata: [DONE]\n", []string{`{"a":1}`, `{"b":2} `, "[DONE]"}},
	{"a field in the field", "data: data: {\"a\":1}\n\ndata: data:data: [DONE]\n\n", []string{`{"a":1}`, "[DONE]"}},
	{"nothing", "", nil},
}

func TestSplitterFindsEventsWhereverPiecesEnd(t *testing.T) {
	for _, c := range streams {
		t.Run(c.name, func(t *testing.T) {
			if got := simpleEvents(c.stream); !slices.Equal(got, c.want) {
				t.Errorf("a simple parser finds %q, want %q", got, c.want)
			}
			for _, cut := range []int{0, 1, 2, 3, 5, 7} {
				if got := eventsOf(t, c.stream, cut); !slices.Equal(got, c.want) {
					t.Errorf("cut at %d: %q, want %q", cut, got, c.want)
				}
			}
		})
	}
}

func TestSplitterTakesLargeEventsButNotAnySize(t *testing.T) {
	large := strings.Repeat("x", 5<<20)
	if got := eventsOf(t, "data: "+large+"\n\n", 32<<10); len(got) != 1 || got[0] != large {
		t.Errorf("%d events", len(got))
	}
	var s Splitter
	var err error
	line := []byte("data: " + strings.Repeat("x", 1<<20) + "\n")
	for i := 0; err == nil && i < 2*MaxEvent>>20; i++ {
		err = s.Feed(line, func(*Event) error { return nil })
	}
	if !errors.Is(err, ErrEventTooLarge) {
		t.Errorf("many lines: %v", err)
	}
	s, err = Splitter{}, nil
	for i := 0; err == nil && i < 2*MaxEvent>>20; i++ {
		err = s.Feed(line[:len(line)-1], func(*Event) error { return nil })
	}
	if !errors.Is(err, ErrEventTooLarge) {
		t.Errorf("one line: %v", err)
	}
}

func TestSplitterStopsAtAnError(t *testing.T) {
	var s Splitter
	want := fmt.Errorf("enough")
	n := 0
	err := s.Feed([]byte("data: a\n\ndata: b\n\n"), func(*Event) error { n++; return want })
	if !errors.Is(err, want) || n != 1 {
		t.Errorf("%v after %d events", err, n)
	}
}

func TestDoneHoweverItIsWritten(t *testing.T) {
	for data, want := range map[string]bool{
		"[DONE]": true, " [DONE] ": true, `"[DONE]"`: true, "[done]": true, "[DONE]\r": true,
		"DONE": false, "": false, "[DONE] x": false, `{"x":"[DONE]"}`: false,
	} {
		if ev := (Event{Data: []byte(data)}); ev.Done() != want {
			t.Errorf("Done of %q is not %t", data, want)
		}
	}
}
