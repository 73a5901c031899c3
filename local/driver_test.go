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

package local

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestEventIsStrippedOfItsAddress(t *testing.T) {
	for _, line := range []string{
		`{"context":"c","run":"r","type":"stdout","text":"a\"},{"}`,
		`{"context": "c", "run": "r", "type": "stdout", "text": "a\"},{"}`,
	} {
		e, ok := parseEvent([]byte(line))
		var body map[string]string
		if err := json.Unmarshal(e.body, &body); !ok || err != nil || e.context != "c" || e.run != "r" || e.kind != "stdout" || len(body) != 2 || body["text"] != `a"},{` {
			t.Errorf("%s: %v %+v %s (%v)", line, ok, e, e.body, err)
		}
	}
	for _, line := range []string{"", "{", "null", `{"type":"ready"}`, `{"run":"r","context":"c","type":"x"}`, `{"context":"c","run":"r"}`, `{"context":"\u0063","run":"r","type":"x"}`} {
		if _, ok := parseEvent([]byte(line)); ok {
			t.Errorf("%s is taken for an event", line)
		}
	}
}

func FuzzParseEvent(f *testing.F) {
	f.Add([]byte(`{"context":"c","run":"r","type":"stdout","text":"x"}`))
	f.Add([]byte(`{"context": "c", "run": "r", "type": "end_of_execution"}`))
	f.Add([]byte(`{"type":"ready","python":"3.11.2"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, ok := parseEvent(line)
		if !ok {
			return
		}
		if !json.Valid(line) {
			return // its reader has to bear it
		}
		var got struct{ Type string }
		if err := json.Unmarshal(e.body, &got); err != nil {
			t.Fatalf("%q became %q: %v", line, e.body, err)
		}
		if bytes.Count(e.body, []byte("\n")) != 1+bytes.Count(line, []byte("\n")) {
			t.Fatalf("%q became more than one line: %q", line, e.body)
		}
	})
}

func TestLinesAreWholeHoweverTheyArrive(t *testing.T) {
	long := strings.Repeat("x", 100)
	text := "a\n\n" + long + "\nb\n"
	for name, r := range map[string]io.Reader{"at once": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text))} {
		br := bufio.NewReaderSize(r, 16)
		for _, want := range []string{"a", "", long, "b"} {
			if got, err := readLine(br, 101); err != nil || string(got) != want {
				t.Fatalf("%s: %q, %v; want %q", name, got, err, want)
			}
		}
		if _, err := readLine(br, 101); !errors.Is(err, io.EOF) {
			t.Errorf("%s: at the end: %v", name, err)
		}
	}
}

func TestEndlessLineEndsTheDriver(t *testing.T) {
	br := bufio.NewReaderSize(neverEnding{}, 4096)
	if _, err := readLine(br, 1<<20); !errors.Is(err, errLineTooLong) {
		t.Errorf("got %v", err)
	}
}

type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) { return copy(p, strings.Repeat("x", len(p))), nil }

// scripted is a driver's other side.
type scripted struct{ io.Writer }

func (scripted) SetWriteDeadline(time.Time) error { return nil }

func TestNoiseAndForeignEventsReachNoRun(t *testing.T) {
	fromDriver, driverWrites := io.Pipe()
	d := newDriver(scripted{io.Discard}, fromDriver)
	go d.listen()
	r, err := d.execute(command{Op: "execute", Context: "c", Run: "r"})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for _, line := range []string{
			"noise", `{"context":"other","run":"r","type":"stdout","text":"not yours"}`,
			`{"context":"other","run":"r","type":"end_of_execution"}`,
			`{"context":"c","run":"unknown","type":"stdout"}`, `{"type":"created","context":"nobody waits"}`, `[1`,
			`{"context":"c","run":"r","type":"stdout","text":"yours"}`, `{"context":"c","run":"r","type":"end_of_execution"}`,
			`{"context":"c","run":"r","type":"stdout","text":"late"}`,
		} {
			_, _ = io.WriteString(driverWrites, line+"\n") // the pipe ends with the test
		}
		driverWrites.Close()
	}()
	if e := <-r.events; e.kind != "stdout" || !strings.Contains(string(e.body), `"yours"`) {
		t.Errorf("first event: %+v", e)
	}
	if e := <-r.events; e.kind != kindEnd {
		t.Errorf("second event: %+v", e)
	}
	<-r.ended
	<-d.done
	if err := d.ended(); err == nil {
		t.Error("an ended driver has no error")
	}
	if _, err := d.ask(command{Op: "create", Context: "x"}, time.Minute); err == nil {
		t.Error("a question to an ended driver was answered")
	}
}
