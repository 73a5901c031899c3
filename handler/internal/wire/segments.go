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
	"cmp"
	"errors"
	"io"
	"sync/atomic"
)

// Segments is a message body as a list of byte ranges: pieces of a Body and
// texts between them. It is never changed, so readers of it may outlive the
// exchange they were made for, as those of http.Transport do: each one holds
// the Body until it is closed.
type Segments struct {
	body *Body // in which pieces lie
	list [][]byte
	size int64
	open bool // the last byte of the body follows the list
}

// fewSegments is as many pieces as most turns have.
const fewSegments = 16

// newSegments returns a list that is empty, with room for so many pieces.
func newSegments(b *Body, room int) *Segments {
	if room > fewSegments {
		return &Segments{body: b, list: make([][]byte, 0, room)}
	}
	s := &struct {
		Segments
		few [fewSegments][]byte
	}{}
	s.body, s.list = b, s.few[:0]
	return &s.Segments
}

func (s *Segments) add(p []byte) {
	if len(p) > 0 {
		s.list = append(s.list, p)
		s.size += int64(len(p))
	}
}

// cursor is a position in a body that only moves forward, so that a list of
// ranges in order costs no search for each.
type cursor struct {
	blocks [][]byte // from the one at the position on
	base   int      // offset of the first of them
}

func (b *Body) cursor() cursor { return cursor{blocks: b.blocks} }

// copy adds a range of the body, which begins no sooner than the one before.
func (c *cursor) copy(s *Segments, start, end int) {
	for len(c.blocks) > 0 {
		block := c.blocks[0]
		from, to := max(start-c.base, 0), min(end-c.base, len(block))
		if from < to {
			s.add(block[from:to])
		}
		if end < c.base+len(block) {
			return
		}
		c.base += len(block)
		c.blocks = c.blocks[1:]
	}
}

// Len returns the number of bytes.
func (s *Segments) Len() int64 { return s.size }

// NewReader returns a reader of all bytes, from the first on. Any number of
// them can be in use at once; closing one ends only that one, and may be done
// while it is read. One that is made after the body is over has been closed.
func (s *Segments) NewReader() io.ReadCloser {
	r := &segmentsReader{body: s.body, list: s.list, open: s.open}
	if s.body != nil && !s.body.hold() {
		r.body, r.list, r.open = nil, nil, false
		r.state.Store(readerClosed)
	}
	return r
}

// WriteTo writes all bytes to w.
func (s *Segments) WriteTo(w io.Writer) (int64, error) {
	n, err := writeAll(w, s.list)
	if err != nil || !s.open {
		return n, err
	}
	last, err := s.body.tail.read()
	if err != nil {
		return n, err
	}
	m, err := w.Write(last)
	return n + int64(m), err
}

func writeAll(w io.Writer, list [][]byte) (int64, error) {
	var total int64
	for _, seg := range list {
		n, err := w.Write(seg)
		total += int64(n)
		if err != nil {
			return total, err
		}
		if n != len(seg) {
			return total, io.ErrShortWrite
		}
	}
	return total, nil
}

// ErrClosed says that a body was read after it was closed, as an error of
// net/http says of the body that a client sends.
var ErrClosed = errors.New("request body was read after it was closed")

// States of a reader.
const (
	readerIdle int32 = iota
	readerBusy       // within Read
	readerClosed
)

// segmentsReader is a position in a list of segments. It is closed apart from
// the reads of its owner, and whichever is last lets go of the body.
type segmentsReader struct {
	body  *Body    // nil once it has been let go
	list  [][]byte // those not begun
	rest  []byte   // what is left of the one begun
	open  bool     // the last byte of the body is to follow
	err   error    // why it did not
	state atomic.Int32
}

func (r *segmentsReader) Read(p []byte) (int, error) {
	if !r.state.CompareAndSwap(readerIdle, readerBusy) {
		return 0, ErrClosed
	}
	n, err := r.read(p)
	if err != nil {
		r.letGo() // not everybody closes what has ended
	}
	if !r.state.CompareAndSwap(readerBusy, readerIdle) {
		r.letGo()
	}
	return n, err
}

func (r *segmentsReader) read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(r.rest) == 0 && !r.next() {
			break
		}
		m := copy(p[n:], r.rest)
		r.rest = r.rest[m:]
		n += m
	}
	if n == 0 && len(p) > 0 {
		err = cmp.Or(r.err, io.EOF)
	}
	return n, err
}

// next goes on to the next piece.
func (r *segmentsReader) next() bool {
	switch {
	case len(r.list) > 0:
		r.rest, r.list = r.list[0], r.list[1:]
	case r.open:
		r.open = false
		r.rest, r.err = r.body.tail.read()
	}
	return len(r.rest) > 0
}

// Close ends the reader. It can be called again, and does not wait for a read.
func (r *segmentsReader) Close() error {
	if r.state.Swap(readerClosed) == readerIdle {
		r.letGo()
	}
	return nil
}

// letGo is called by the one that has the reader.
func (r *segmentsReader) letGo() {
	if r.body != nil {
		r.body.Release()
	}
	r.body, r.list, r.rest = nil, nil, nil
}
