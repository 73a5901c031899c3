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
	"bytes"
	"errors"
)

// MaxEvent is the size in bytes of the largest server-sent event that is read
// from an upstream. Arguments of a tool call that come in one piece reach
// megabytes; what is larger is no chat completion.
const MaxEvent = 32 << 20

// ErrEventTooLarge says that an upstream sent an event of more than MaxEvent
// bytes.
var ErrEventTooLarge = errors.New("upstream sent a server-sent event that is too large")

// Event is one server-sent event. Its fields are valid until the function
// that got it returns: they may lie in the piece that was fed.
type Event struct {
	// Name is the last `event` field.
	Name []byte
	// Data is the `data` lines, joined by line feeds.
	Data []byte
	// HasData says that there was a `data` field.
	HasData bool
	// Error is the value of a field `error`, which is no field of the format.
	// llama.cpp names its failures so:
	// https://github.com/ggml-org/llama.cpp/pull/16109
	Error []byte
}

// Done says whether the event is the end of the stream.
func (e *Event) Done() bool { return isDone(e.Data) }

func isDone(data []byte) bool {
	data = bytes.Trim(data, " \t\r\n\"")
	return len(data) == len("[DONE]") && bytes.EqualFold(data, []byte("[DONE]"))
}

// Splitter cuts a stream of server-sent events into events, wherever the
// pieces that it is fed end. The zero value is ready for use.
type Splitter struct {
	partial []byte // the line that is not complete
	afterCR bool   // the last line ended with CR: a LF belongs to it
	begun   bool   // past the place of a byte order mark
	event   Event
	joined  []byte // backs Data when it has to be kept or joined
	nameBuf []byte
	errBuf  []byte
	filled  bool // the event has a field
	size    int
}

// Feed takes the next piece of the stream and calls emit for each event that
// ends in it. It stops at the first error of emit.
func (s *Splitter) Feed(p []byte, emit func(*Event) error) error {
	for len(p) > 0 {
		if data, n := s.whole(p); n > 0 {
			p = p[n:]
			s.begun = true
			s.filled, s.event.Data, s.event.HasData = true, data, true
			if err := s.dispatch(emit); err != nil {
				return err
			}
			continue
		}
		if s.afterCR {
			s.afterCR = false
			if p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		i := bytes.IndexByte(p, '\n')
		if j := bytes.IndexByte(p[:max(i, 0)], '\r'); i >= 0 && j >= 0 {
			i = j
		} else if i < 0 {
			i = bytes.IndexByte(p, '\r')
		}
		if i < 0 {
			if len(s.partial)+len(p)+s.size > MaxEvent {
				return ErrEventTooLarge
			}
			s.partial = append(s.partial, p...)
			return nil
		}
		line := p[:i]
		if len(s.partial) > 0 {
			s.partial = append(s.partial, line...)
			line = s.partial
		}
		s.afterCR = p[i] == '\r'
		p = p[i+1:]
		err := s.line(line, emit)
		s.partial = s.partial[:0]
		if err != nil {
			return err
		}
	}
	return nil
}

// whole returns the data of an event that p begins with and of which nothing
// has to be kept or joined, as chunks mostly come, and the length of the event.
// It is 0 when the event is another one.
func (s *Splitter) whole(p []byte) (data []byte, n int) {
	const field = "data: "
	if s.filled || s.afterCR || s.size > 0 || len(s.partial) > 0 || !bytes.HasPrefix(p, []byte(field+"{")) {
		return nil, 0
	}
	i := bytes.IndexByte(p, '\n')
	if i < 0 || i > MaxEvent || i+1 == len(p) || p[i+1] != '\n' || bytes.IndexByte(p[:i], '\r') >= 0 {
		return nil, 0
	}
	return p[len(field):i:i], i + 2
}

// Close ends the stream: what an upstream left without a blank line at the
// end is an event all the same.
func (s *Splitter) Close(emit func(*Event) error) error {
	if len(s.partial) > 0 {
		err := s.line(s.partial, emit)
		s.partial = s.partial[:0]
		if err != nil {
			return err
		}
	}
	return s.dispatch(emit)
}

// line takes a line without its end.
func (s *Splitter) line(line []byte, emit func(*Event) error) error {
	if !s.begun {
		s.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	if len(line) == 0 {
		return s.dispatch(emit)
	}
	if s.size += len(line); s.size > MaxEvent {
		return ErrEventTooLarge
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		return s.data(value, emit)
	case "event":
		s.nameBuf = append(s.nameBuf[:0], value...)
		s.event.Name = s.nameBuf
		s.filled = true
	case "error":
		s.errBuf = append(s.errBuf[:0], value...)
		s.event.Error = s.errBuf
		s.filled = true
	}
	return nil
}

// data takes a data field.
func (s *Splitter) data(value []byte, emit func(*Event) error) error {
	// Some relays put a whole line of their upstream into the field.
	for bytes.HasPrefix(value, []byte("data:")) {
		value = bytes.TrimPrefix(value[len("data:"):], []byte(" "))
	}
	if s.event.HasData && begins(s.joined, value) {
		if err := s.dispatch(emit); err != nil {
			return err
		}
		s.size = len(value)
	}
	s.filled = true
	if s.event.HasData {
		s.joined = append(append(s.joined, '\n'), value...)
	} else {
		s.joined = append(s.joined[:0], value...)
	}
	s.event.HasData = true
	s.event.Data = s.joined
	return nil
}

// begins says whether a data line begins an event although no blank line came
// before it, which some upstreams leave out. An object that has ended and
// another one, or the end of the stream, can be no JSON value together.
func begins(before, line []byte) bool {
	before = bytes.TrimRight(before, " \t")
	return len(before) > 0 && before[len(before)-1] == '}' &&
		(bytes.HasPrefix(line, []byte("{")) || isDone(line))
}

// dispatch ends the event.
func (s *Splitter) dispatch(emit func(*Event) error) error {
	s.size = 0
	if !s.filled {
		return nil
	}
	s.filled = false
	err := emit(&s.event)
	s.event = Event{}
	return err
}
