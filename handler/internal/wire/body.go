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
	"io"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrTooLarge says that a body has more bytes than ReadBody was allowed to
// take. It comes with no body: a part of a request is of no use.
var ErrTooLarge = errors.New("request body is larger than the limit")

// ErrLonger says that a body has more bytes than it was declared to have.
var ErrLonger = errors.New("request body is longer than its declared length")

// How ReadBody takes memory. A body of known length gets one block of that size
// up to exactBuffer; beyond it, and without a length, memory is only taken in
// proportion to what has arrived, so that a header alone cannot claim it.
const (
	firstBlock  = 4 << 10
	largestGrow = 1 << 20
	exactBuffer = 8 << 20
)

// largestOpen is the size of bodies of which the last byte is left: of those it
// has come already, in the buffer of the connection.
const largestOpen = 4 << 10

// Body is the bytes of a request, in one block or in several. It does not
// change but by Complete, so it may be read any number of times and by several
// goroutines at once. Offsets into it count from the first byte of the first
// block.
type Body struct {
	blocks [][]byte
	size   int
	few    [2][]byte // backs blocks of the usual body: one, and the last byte
	whole  Segments  // all of it

	lent  bool         // the blocks are to be given back
	users atomic.Int64 // while they are: the owner of the body and the readers that are open

	tail tail
}

// NewBody returns a body over the blocks, which it keeps: the caller must not
// write to them any more.
func NewBody(blocks ...[]byte) *Body {
	b := &Body{}
	b.blocks = b.few[:0]
	for _, block := range blocks {
		b.add(block)
	}
	return b
}

// Release ends the owner's use of a body that ReadBody returned: neither it nor
// anything that refers to its bytes may be used any more. Readers that are
// still open can be read on, as http.Transport may do long after it has
// answered; the memory is used again once all are closed. Without Release, or
// with a reader that is never closed, it is left to the garbage collector.
func (b *Body) Release() {
	if b.lent && b.users.Add(-1) == 0 {
		b.giveBack()
	}
}

// giveBack leaves an empty body.
func (b *Body) giveBack() {
	for i, block := range b.blocks {
		freed.give(block)
		b.blocks[i] = nil
	}
	b.blocks, b.size, b.whole.size = nil, 0, 0 // whole has no use any more: it makes readers that are closed
}

// hold adds a user. It is false when the body may be over.
func (b *Body) hold() bool {
	if !b.lent {
		return true
	}
	for {
		n := b.users.Load()
		if n <= 0 {
			return false
		}
		if b.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (b *Body) add(block []byte) {
	if len(block) > 0 {
		b.blocks = append(b.blocks, block)
		b.size += len(block)
		b.whole = Segments{body: b, list: b.blocks, size: int64(b.size)}
	}
}

// ReadBody reads the body of a request from r. contentLength is the length that
// the request declares, or -1. Of a small body with a length the last byte is
// left in r until a reader wants it, or Complete. A limit of 0 or less is none.
// The error is ErrTooLarge or the one that r returned, as it came. The body is
// to be released.
func ReadBody(r io.Reader, contentLength, limit int64) (*Body, error) {
	if limit > 0 && contentLength > limit {
		return nil, ErrTooLarge
	}
	b := NewBody()
	b.lent = true
	b.users.Store(1)
	if err := b.read(r, contentLength, limit); err != nil {
		b.Release()
		return nil, err
	}
	return b, nil
}

func (b *Body) read(r io.Reader, contentLength, limit int64) error {
	for {
		size := nextBlock(int64(b.size), contentLength)
		if limit > 0 {
			size = min(size-1, limit-int64(b.size)) + 1 // the limit may be the largest there is
		}
		block := freed.take(int(size))
		n, err := fill(r, block)
		if n == 0 {
			freed.give(block)
		}
		b.add(block[:n])
		switch {
		case limit > 0 && int64(b.size) > limit:
			return ErrTooLarge
		case err == io.EOF: //nolint:errorlint // a wrapped one is not the end of the body
			return nil
		case err != nil:
			return err
		case contentLength <= largestOpen && int64(b.size) == contentLength-1:
			b.tail.r, b.whole.open = r, true
			b.whole.size++
			return nil
		}
	}
}

// nextBlock returns the size of the block that follows the first got bytes.
func nextBlock(got, contentLength int64) int64 {
	left := contentLength - got
	switch {
	case contentLength < 0 || left < 0:
		return min(max(got, firstBlock), largestGrow)
	case contentLength <= largestOpen && left > 1:
		return left - 1
	}
	// One more byte, in which nothing is to come, shows the end.
	return min(left, max(got, exactBuffer)-1) + 1
}

// fill reads until block is full or r ends. Unlike io.ReadFull it does not
// rename the end of r.
func fill(r io.Reader, block []byte) (int, error) {
	idle := 0
	for n := 0; ; {
		m, err := r.Read(block[n:])
		n += m
		if err != nil || n == len(block) {
			return n, err
		}
		if m > 0 {
			idle = 0
		} else if idle++; idle == 100 {
			return n, io.ErrNoProgress
		}
	}
}

// tail is the end of a body that is still where the body came from. net/http
// starts to watch the connection of a client once the body of its request has
// been read to the end, which wakes a thread. Where that is done by the
// transport, as with any other handler, a wake-up happens anyway. With large
// bodies it is lost in what else is to be done, and who left one would give the
// client more time to break off.
type tail struct {
	r    io.Reader // nil when nothing was left
	once sync.Once
	room [2]byte // one byte is to come; another shows that there are more
	n    int
	err  error
}

// read returns the last byte, or nothing when the body ended without it. It is
// taken once for all who ask, who wait for that.
func (t *tail) read() ([]byte, error) {
	t.once.Do(func() {
		n, err := fill(t.r, t.room[:])
		switch {
		case n > 1:
			t.err = ErrLonger
		case err != io.EOF: //nolint:errorlint // a wrapped one is not the end of the body
			t.err = err
		default:
			t.n = n
		}
	})
	return t.room[:t.n:t.n], t.err
}

// Complete reads what ReadBody has left. It is not for a body of which readers
// have been made.
func (b *Body) Complete() error {
	if !b.whole.open {
		return nil
	}
	last, err := b.tail.read()
	if err == nil {
		b.whole.open, b.whole.size = false, int64(b.size)
		b.add(last)
	}
	return err
}

// Len returns the number of bytes.
func (b *Body) Len() int64 { return b.whole.size }

// Segments returns the whole body, unedited.
func (b *Body) Segments() *Segments { return &b.whole }

// Chunks yields the bytes from start to end in order, without copying them.
func (b *Body) Chunks(start, end int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		at := 0
		for _, block := range b.blocks {
			from, to := max(start-at, 0), min(end-at, len(block))
			if from < to && !yield(block[from:to]) {
				return
			}
			if at += len(block); at >= end {
				return
			}
		}
	}
}

// Bytes returns the bytes from start to end. They are the body's own where
// they lie in one block, so they must not be written to, and else a copy.
func (b *Body) Bytes(start, end int) []byte {
	var first []byte
	joined := false
	for chunk := range b.Chunks(start, end) {
		switch {
		case first == nil:
			first = slices.Clip(chunk)
		case !joined:
			first = slices.Concat(make([]byte, 0, end-start), first, chunk)
			joined = true
		default:
			first = append(first, chunk...)
		}
	}
	return first
}
