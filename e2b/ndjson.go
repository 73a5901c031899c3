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
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// readBuffer is the size of a read; a line that fits is parsed where it lies.
const readBuffer = 32 << 10

// eventReader is what the events of an execution are read with.
type eventReader struct {
	lines *bufio.Reader
	event wireEvent // of the line being parsed
}

var readers = sync.Pool{New: func() any { return &eventReader{lines: bufio.NewReaderSize(nil, readBuffer)} }}

// readEvents reads events from NDJSON until the execution's end, which it
// reports, or the end of r or an error. A line may be as long as r, which has at
// most limit bytes. Blank lines, those that do not parse and events of unknown
// types are skipped. A last line needs no line feed.
func readEvents(r io.Reader, limit int64, emit func(Event)) (ended bool, err error) {
	er := readers.Get().(*eventReader)
	er.lines.Reset(r)
	defer func() {
		er.lines.Reset(nil) // the pool keeps no connection
		er.event = wireEvent{}
		readers.Put(er)
	}()
	var long []byte // the beginning of a line that is longer than the buffer
	for {
		piece, err := er.lines.ReadSlice('\n')
		line := piece
		if len(long) > 0 || errors.Is(err, bufio.ErrBufferFull) {
			long = appendPiece(long, piece, limit)
			line = long
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if event, ok := er.event.parse(line); ok {
			emit(event)
			if event.Type == EndOfExecution {
				return true, nil
			}
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		long = long[:0]
	}
}

// appendPiece appends with doubling: append's own growth of large slices copies
// a line of many MB too often. It takes no more than limit unless it must.
func appendPiece(long, piece []byte, limit int64) []byte {
	if need := len(long) + len(piece); need > cap(long) {
		double := min(int64(max(2*cap(long), 4*readBuffer)), limit)
		grown := make([]byte, len(long), max(int(double), need))
		copy(grown, long)
		long = grown
	}
	return append(long, piece...)
}

// wireEvent is a line as it is sent: a result's fields stand beside the type,
// and text belongs to outputs and results alike.
type wireEvent struct {
	Type           EventType `json:"type"`
	Name           string    `json:"name"`
	Value          string    `json:"value"`
	Traceback      string    `json:"traceback"`
	ExecutionCount int       `json:"execution_count"`
	Result

	// Nobody asks for these, but a line with them is a usual one.
	Timestamp    string          `json:"timestamp"`
	IsMainResult bool            `json:"is_main_result"`
	Data         json.RawMessage `json:"data"`
	Extra        json.RawMessage `json:"extra"`
}

// parse parses a line; ok is false when there is no event in it. The event
// lasts, w is for the next line.
func (w *wireEvent) parse(line []byte) (event Event, ok bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return Event{}, false
	}
	if *w = (wireEvent{}); w.usual(line) {
		return w.event()
	}
	if *w = (wireEvent{}); decodeLenient(line, w) != nil {
		// Python writes numbers that JSON does not have.
		finite, changed := nullNonFinite(line)
		if *w = (wireEvent{}); !changed || decodeLenient(finite, w) != nil {
			return Event{}, false
		}
	}
	return w.event()
}

// decodeLenient decodes JSON. A field of another type than expected is left
// out, what stands beside it is not.
func decodeLenient(data []byte, out any) error {
	err := json.Unmarshal(data, out)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// event returns the event with the fields of its type.
func (w *wireEvent) event() (Event, bool) {
	event := Event{Type: w.Type}
	switch w.Type {
	case Stdout, Stderr:
		event.Text = w.Text
	case ResultEvent:
		result := w.Result
		for _, raw := range []*json.RawMessage{&result.JSON, &result.Chart} {
			if string(*raw) == "null" {
				*raw = nil
			}
		}
		event.Result = &result
	case ErrorEvent:
		event.Name, event.Value, event.Traceback = w.Name, w.Value, w.Traceback
	case NumberOfExecutions:
		event.ExecutionCount = w.ExecutionCount
	case Keepalive, EndOfExecution:
	default:
		return Event{}, false
	}
	return event, true
}

// nonFinite are the numbers that Python's json writes and JSON lacks.
var nonFinite = [][]byte{[]byte("NaN"), []byte("-Infinity"), []byte("Infinity")}

// nullNonFinite returns a line with null for each number that is not finite,
// and whether it may have found one. Strings stay as they are.
func nullNonFinite(line []byte) ([]byte, bool) {
	if !bytes.Contains(line, nonFinite[0]) && !bytes.Contains(line, nonFinite[2]) {
		return line, false
	}
	out := make([]byte, 0, len(line)+64)
	for i := 0; i < len(line); {
		if line[i] == '"' {
			end := stringEnd(line, i)
			out = append(out, line[i:end]...)
			i = end
			continue
		}
		if n := nonFiniteAt(line[i:]); n > 0 {
			out = append(out, "null"...)
			i += n
			continue
		}
		out = append(out, line[i])
		i++
	}
	return out, true
}

// nonFiniteAt returns the length of the number that is not finite at the
// beginning of b, 0 when there is none.
func nonFiniteAt(b []byte) int {
	for _, number := range nonFinite {
		if bytes.HasPrefix(b, number) {
			return len(number)
		}
	}
	return 0
}

// stringEnd returns the index behind the JSON string that begins at start, or
// the end of the line when it does not end.
func stringEnd(line []byte, start int) int {
	for i := start + 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(line)
}
