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

package e2b

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// pieces is a reader that gives size bytes at a time.
type pieces struct {
	data []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.size)], p.data)
	p.data = p.data[n:]
	return n, nil
}

// collect reads all events of a body.
func collect(r io.Reader, limit int64) (events []Event, ended bool, err error) {
	ended, err = readEvents(r, limit, func(e Event) { events = append(events, e) })
	return events, ended, err
}

func TestLinesThatAreNoEventsAreSkipped(t *testing.T) {
	body := strings.Join([]string{
		`{"type": "number_of_executions", "execution_count": 3}`,
		``, "  \t\r", `not json`, `{"type": "stdout", "text": "cut`, `null`, `7`, `"text"`, `["type"]`, `{}`,
		`{"type": "future_thing", "x": 1}`, `{"type": 7}`, `{"type": null}`, "\x00\xff", `{NaN}`, `{"a": -Infinity-}`,
		strings.Repeat(`{"a":`, 20_000),
		`{"type": "stdout", "text": "42\n", "timestamp": "t"}`,
		`{"type": "end_of_execution"}`,
		`{"type": "stdout", "text": "behind the end"}`,
	}, "\n")
	want := []Event{
		{Type: NumberOfExecutions, ExecutionCount: 3},
		{Type: Stdout, Text: "42\n"},
		{Type: EndOfExecution},
	}
	got, ended, err := collect(strings.NewReader(body), DefaultMaxRead)
	if err != nil || !ended || !reflect.DeepEqual(got, want) {
		t.Errorf("events %+v, ended %t, error %v\nwant %+v", got, ended, err, want)
	}
}

// A line, and the one event in it.
func TestEvents(t *testing.T) {
	tests := []struct {
		name, line string
		want       Event
	}{
		{"carriage return", `{"type":"stdout","text":"a"}` + "\r", Event{Type: Stdout, Text: "a"}},
		{"spaces around", "  {\"type\":\"stderr\",\"text\":\"a\"}\t", Event{Type: Stderr, Text: "a"}},
		{"null fields", `{"type":"result","text":null,"png":null,"json":null,"extra":null}`, Event{Type: ResultEvent, Result: &Result{}}},
		{"fields of other types", `{"type":"result","text":["a"],"html":7,"png":"b","is_main_result":"yes"}`, Event{Type: ResultEvent, Result: &Result{PNG: "b"}}},
		{"a lone surrogate", `{"type":"stdout","text":"a\ud800b"}`, Event{Type: Stdout, Text: "a\ufffdb"}},
		{"bytes that are no UTF-8", "{\"type\":\"stdout\",\"text\":\"a\xffb\"}", Event{Type: Stdout, Text: "a\ufffdb"}},
		{
			"NaN in JSON", `{"type":"result","text":"nan","json":{"a":[NaN,1,Infinity,-Infinity]},"is_main_result":true}`,
			Event{Type: ResultEvent, Result: &Result{Text: "nan", JSON: []byte(`{"a":[null,1,null,null]}`)}},
		},
		{"NaN in a string too", `{"type":"result","text":"NaN \" -Infinity","json":NaN}`, Event{Type: ResultEvent, Result: &Result{Text: `NaN " -Infinity`}}},
		{"NaN as execution count", `{"type":"number_of_executions","execution_count":NaN}`, Event{Type: NumberOfExecutions}},
		{
			"an error", `{"type":"error","name":"ContextRestarting","value":"Context was restarted","traceback":"","text":"not of this type"}`,
			Event{Type: ErrorEvent, Name: "ContextRestarting", Value: "Context was restarted"},
		},
		{
			"every representation", `{"type":"result","text":"1","html":"2","markdown":"3","svg":"4","png":"5","jpeg":"6","pdf":"7","latex":"8","javascript":"9","json":{"a":1},"data":[1],"chart":{"t":1},"extra":{"x":"y"},"is_main_result":true}`,
			Event{Type: ResultEvent, Result: &Result{
				Text: "1", HTML: "2", Markdown: "3", SVG: "4", PNG: "5", JPEG: "6", PDF: "7", Latex: "8", JavaScript: "9",
				JSON: []byte(`{"a":1}`), Chart: []byte(`{"t":1}`),
			}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, ended, err := collect(strings.NewReader(test.line), DefaultMaxRead)
			if err != nil || ended || len(got) != 1 || !reflect.DeepEqual(got[0], test.want) {
				t.Errorf("events %+v, ended %t, error %v\nwant %+v", got, ended, err, test.want)
			}
		})
	}
}

func TestALineMayBeLongerThanTheBuffer(t *testing.T) {
	for _, size := range []int{readBuffer - 40, readBuffer - 1, readBuffer, readBuffer + 1, 3 * readBuffer, 5 << 20} {
		png := strings.Repeat("A", size)
		body := `{"type":"result","png":"` + png + `"}` + "\n" + `{"type":"stdout","text":"x"}` + "\n" +
			`{"type":"result","png":"` + png + `"}` + "\n" + `{"type":"end_of_execution"}`
		got, ended, err := collect(strings.NewReader(body), DefaultMaxRead)
		if err != nil || !ended || len(got) != 4 || got[0].Result.PNG != png || got[1].Text != "x" || got[2].Result.PNG != png {
			t.Fatalf("size %d: %d events, ended %t, error %v", size, len(got), ended, err)
		}
	}
}

func TestACutBodyGivesTheEventsBeforeTheCut(t *testing.T) {
	first := `{"type":"stdout","text":"a"}` + "\n"
	r := io.MultiReader(strings.NewReader(first+`{"type":"std`), iotest.ErrReader(io.ErrUnexpectedEOF))
	got, ended, err := collect(r, DefaultMaxRead)
	if !errors.Is(err, io.ErrUnexpectedEOF) || ended || len(got) != 1 || got[0].Text != "a" {
		t.Errorf("events %+v, ended %t, error %v", got, ended, err)
	}
	// A last line that is whole counts, although its line feed was lost.
	r = io.MultiReader(strings.NewReader(first+`{"type":"end_of_execution"}`), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, ended, err = collect(r, DefaultMaxRead); !ended || err != nil {
		t.Errorf("ended %t, error %v", ended, err)
	}
}

// endless is a line without end, which counts what was read of it.
type endless struct {
	left int64
	peak uint64 // of the heap, measured once in a while
	next int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), e.left)
	copy(p, bytes.Repeat([]byte("A"), int(n)))
	if e.left -= n; e.left <= e.next {
		e.next = e.left - 1<<20
		e.peak = max(e.peak, heap())
	}
	return int(n), nil
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestALineWithoutEndIsGivenUpWithinBounds(t *testing.T) {
	const limit = 4 << 20
	line := &endless{left: 100 << 20, next: 100 << 20}
	before := heap()
	_, ended, err := collect(&limitedReader{r: line, left: limit}, limit)
	if !errors.Is(err, errTooLarge) || ended {
		t.Fatalf("ended %t, error %v", ended, err)
	}
	if grown := int64(line.peak) - int64(before); grown > limit+limit/2 {
		t.Errorf("the heap grew by %d bytes for a limit of %d", grown, limit)
	}
	if read := 100<<20 - line.left; read > limit+readBuffer {
		t.Errorf("%d bytes were read for a limit of %d", read, limit)
	}
}

func TestLimitedReaderTellsTheEndFromTooMuch(t *testing.T) {
	for _, test := range []struct {
		length int
		limit  int64
		want   error
	}{{0, 0, nil}, {1, 0, errTooLarge}, {10, 10, nil}, {11, 10, errTooLarge}, {100, 10, errTooLarge}, {10, 1<<63 - 1, nil}} {
		got, err := io.ReadAll(&limitedReader{r: &pieces{make([]byte, test.length), 3}, left: test.limit})
		if !errors.Is(err, test.want) || int64(len(got)) != min(int64(test.length), test.limit) {
			t.Errorf("length %d, limit %d: %d bytes, error %v", test.length, test.limit, len(got), err)
		}
	}
}

func FuzzReadEvents(f *testing.F) {
	f.Add([]byte("{\"type\":\"stdout\",\"text\":\"a\"}\n\n{\"type\":\"result\",\"json\":NaN}\n{\"type\":\"end_of_execution\"}\n"), uint16(1))
	f.Add([]byte(`{"type":"error","name":"E","value":"v"}`), uint16(7))
	f.Fuzz(func(t *testing.T, body []byte, size uint16) {
		const limit = 1 << 16
		whole, wholeEnded, wholeErr := collect(&limitedReader{r: bytes.NewReader(body), left: limit}, limit)
		cut, cutEnded, cutErr := collect(&limitedReader{r: &pieces{body, int(size) + 1}, left: limit}, limit)
		if !reflect.DeepEqual(whole, cut) || wholeEnded != cutEnded || !errors.Is(cutErr, wholeErr) {
			t.Errorf("in pieces of %d: %+v %t %v\nin one: %+v %t %v", size+1, cut, cutEnded, cutErr, whole, wholeEnded, wholeErr)
		}
		for i, e := range whole {
			if (e.Type == EndOfExecution) != (wholeEnded && i == len(whole)-1) {
				t.Errorf("the end is event %d of %d, ended %t", i, len(whole), wholeEnded)
			}
			if (e.Type == ResultEvent) != (e.Result != nil) {
				t.Errorf("event %d of type %q has result %v", i, e.Type, e.Result)
			}
		}
	})
}

func BenchmarkReadEvents(b *testing.B) {
	bodies := map[string]string{
		"outputs": strings.Repeat(`{"type": "stdout", "text": "hello\nworld\n", "timestamp": "2026-11-30T12:30:21.995259+00:00"}`+"\n", 100),
		"chart":   `{"type": "result", "text": "<Figure>", "png": "` + strings.Repeat("iVBORw0KGgo", 8_000) + `", "is_main_result": false}` + "\n",
		"1MiB":    `{"type": "result", "png": "` + strings.Repeat("A", 1<<20) + `"}` + "\n",
	}
	for _, name := range []string{"outputs", "chart", "1MiB"} {
		body := bodies[name] + `{"type": "end_of_execution"}` + "\n"
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if ended, err := readEvents(strings.NewReader(body), DefaultMaxRead, func(Event) {}); !ended || err != nil {
					b.Fatal(fmt.Sprint(ended, err))
				}
			}
		})
	}
}
