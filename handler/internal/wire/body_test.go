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
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

func TestReadBodyGivesWhatTheReaderDelivers(t *testing.T) {
	for _, size := range []int{0, 1, firstBlock - 1, firstBlock, firstBlock + 1, 100_000, exactBuffer, exactBuffer + 7} {
		data := bytes.Repeat([]byte("0123456789abcde\n"), size/16+1)[:size]
		for _, declared := range []int{-1, size, size + 1, size + 10} {
			b, err := ReadBody(bytes.NewReader(data), int64(declared), 0)
			if err != nil {
				t.Fatalf("%d bytes declared as %d: %v", size, declared, err)
			}
			if declared == size && size <= exactBuffer && len(b.blocks) > 1 {
				t.Errorf("%d bytes of known length came in %d blocks", size, len(b.blocks))
			}
			if got, err := io.ReadAll(b.Segments().NewReader()); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes declared as %d: read %d, %v", size, declared, len(got), err)
			}
			if err := b.Complete(); err != nil || b.Len() != int64(size) || !bytes.Equal(b.Bytes(0, size), data) {
				t.Errorf("%d bytes declared as %d: completed to %d, %v", size, declared, b.Len(), err)
			}
			if got, err := io.ReadAll(b.Segments().NewReader()); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes declared as %d, complete: read %d, %v", size, declared, len(got), err)
			}
		}
	}
}

func TestReadBodyWorksWithAnyReader(t *testing.T) {
	const data = `{"messages":[]}`
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"one byte a time":   iotest.OneByteReader,
		"end with the data": iotest.DataErrReader,
		"half of it":        iotest.HalfReader,
	} {
		for _, declared := range []int64{-1, int64(len(data))} {
			b, err := ReadBody(wrap(strings.NewReader(data)), declared, 0)
			if err == nil {
				err = b.Complete()
			}
			if err != nil || string(b.Segments().Bytes()) != data {
				t.Errorf("%s, declared %d: %v", name, declared, err)
			}
		}
	}
}

// endless delivers zeros and counts what it was asked for.
type endless struct{ read int64 }

func (r *endless) Read(p []byte) (int, error) {
	r.read += int64(len(p))
	return len(p), nil
}

func TestReadBodyKeepsToTheLimit(t *testing.T) {
	data := strings.Repeat("x", 10_000)
	for _, declared := range []int64{-1, 10_000} {
		if _, err := ReadBody(strings.NewReader(data), declared, 10_000); err != nil {
			t.Errorf("as long as the limit, declared %d: %v", declared, err)
		}
		if b, err := ReadBody(strings.NewReader(data), declared, 9_999); !errors.Is(err, ErrTooLarge) || b != nil {
			t.Errorf("one byte over the limit, declared %d: %v", declared, err)
		}
	}
	r := &endless{}
	if _, err := ReadBody(r, 1<<30, 1<<20); !errors.Is(err, ErrTooLarge) || r.read > 0 {
		t.Errorf("declared over the limit: %v after %d bytes", err, r.read)
	}
	if _, err := ReadBody(r, -1, 1<<20); !errors.Is(err, ErrTooLarge) || r.read > 1<<20+1 {
		t.Errorf("endless: %v after %d bytes", err, r.read)
	}
}

func TestReadBodyTakesAnyNumberForALimitOrALength(t *testing.T) {
	for _, limit := range []int64{0, 2, math.MaxInt64 - 1, math.MaxInt64} {
		for _, declared := range []int64{-1, 2, 3, math.MaxInt64} {
			b, err := ReadBody(strings.NewReader("{}"), declared, limit)
			if limit > 0 && declared > limit {
				if !errors.Is(err, ErrTooLarge) {
					t.Errorf("declared %d, limit %d: %v", declared, limit, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("declared %d, limit %d: %v", declared, limit, err)
				continue
			}
			if err := b.Complete(); err != nil || string(b.Bytes(0, 2)) != "{}" {
				t.Errorf("declared %d, limit %d: %v", declared, limit, err)
			}
			b.Release()
		}
	}
}

func TestReadBodyTakesMemoryAsBytesArrive(t *testing.T) {
	const declared = int64(1 << 40)
	got := int64(0)
	for got < 100*exactBuffer {
		n := nextBlock(got, declared)
		if n > max(got, exactBuffer) {
			t.Fatalf("%d bytes allocated after %d have come", n, got)
		}
		got += n
	}
}

func TestReadBodyReturnsTheReadersError(t *testing.T) {
	broken := errors.New("broken")
	for _, declared := range []int64{-1, 100} {
		r := io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken))
		if b, err := ReadBody(r, declared, 0); err != broken || b != nil { //nolint:errorlint // it is to be that very error
			t.Errorf("declared %d: %v, %v", declared, b, err)
		}
	}
}

// stuck delivers nothing, forever.
type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestReadBodyGivesUpOnAReaderThatDeliversNothing(t *testing.T) {
	if _, err := ReadBody(stuck{}, -1, 0); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("got %v", err)
	}
}

func TestReadBodyReadsOnceBeyondTheData(t *testing.T) {
	for _, declared := range []int64{-1, 3} {
		rest, ends := "abc", 0
		r := readerFunc(func(p []byte) (int, error) {
			n := copy(p, rest)
			if rest = rest[n:]; n > 0 {
				return n, nil
			}
			ends++
			return 0, io.EOF
		})
		b, err := ReadBody(r, declared, 0)
		if err == nil {
			err = b.Complete()
		}
		if err != nil || ends != 1 || b.Complete() != nil {
			t.Errorf("declared %d: the end was asked for %d times, %v", declared, ends, err)
		}
	}
}

// endingWith delivers a text but for its last byte, and then what it is told to.
func endingWith(text string, last func(p []byte) (int, error)) io.Reader {
	return io.MultiReader(strings.NewReader(text[:len(text)-1]), readerFunc(last))
}

// The transport is to read the end of a body, so that the server begins to
// watch the connection where it always does.
func TestLastByteIsLeftToTheReader(t *testing.T) {
	const text = `{"messages":[]}`
	asked := 0
	b, err := ReadBody(endingWith(text, func(p []byte) (int, error) {
		asked++
		p[0] = '}'
		return 1, io.EOF
	}), int64(len(text)), 0)
	if err != nil || asked > 0 || b.Len() != int64(len(text)) || b.Segments().Len() != b.Len() {
		t.Fatalf("the end was asked for %d times, %d bytes, %v", asked, b.Len(), err)
	}
	p := make([]byte, 2*len(text))
	for range 3 { // over further connections
		r := b.Segments().NewReader()
		if n, err := r.Read(p); err != nil || string(p[:n]) != text {
			t.Errorf("one read is %q, %v", p[:n], err)
		}
		if n, err := r.Read(p); n != 0 || err != io.EOF {
			t.Errorf("after it: %d, %v", n, err)
		}
	}
	if asked != 1 {
		t.Errorf("the end was asked for %d times", asked)
	}
}

func TestLastByteIsReadOnceForAllReaders(t *testing.T) {
	const text = `{"messages":[]}`
	reading, deliver := make(chan struct{}), make(chan struct{})
	b, err := ReadBody(endingWith(text, func(p []byte) (int, error) {
		close(reading)
		<-deliver
		p[0] = '}'
		return 1, io.EOF
	}), int64(len(text)), 0)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	read := func() {
		r := b.Segments().NewReader()
		all.Go(func() {
			if got, err := io.ReadAll(r); err != nil || string(got) != text {
				t.Errorf("read %q, %v", got, err)
			}
		})
	}
	read()
	<-reading
	read()
	closed := b.Segments().NewReader()
	_ = closed.Close() // without waiting for them
	b.Release()
	close(deliver)
	all.Wait()
	if b.Len() != 0 {
		t.Error("the body was not given back")
	}
}

func TestMissingLastByteIsTheReadersError(t *testing.T) {
	const text = `{"messages":[]}`
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		last func(p []byte) (int, error)
		want error
	}{
		"broken": {func([]byte) (int, error) { return 0, broken }, broken},
		"longer": {func(p []byte) (int, error) { return copy(p, "}\n"), nil }, ErrLonger},
		"stuck":  {stuck{}.Read, io.ErrNoProgress},
	} {
		b, err := ReadBody(endingWith(text, c.last), int64(len(text)), 0)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := io.ReadAll(b.Segments().NewReader())
			if !errors.Is(err, c.want) || string(got) != text[:len(text)-1] {
				t.Errorf("%s: read %q, %v", name, got, err)
			}
			if err := b.Complete(); !errors.Is(err, c.want) {
				t.Errorf("%s: completed, %v", name, err)
			}
		}
		b.Release()
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestBytesAreTheBodysOwnOrACopy(t *testing.T) {
	data := []byte("0123456789")
	for size := 1; size <= len(data); size++ {
		b := split(data, size)
		for start := range len(data) {
			for end := start; end <= len(data); end++ {
				got := b.Bytes(start, end)
				if string(got) != string(data[start:end]) {
					t.Fatalf("blocks of %d: [%d:%d] is %q", size, start, end, got)
				}
				_ = append(got, 'x')
				if string(data) != "0123456789" {
					t.Fatal("an append to the bytes changes the body")
				}
			}
		}
	}
}

func TestNewBodySkipsEmptyBlocks(t *testing.T) {
	b := NewBody(nil, []byte("{"), []byte{}, []byte(`"stream":true}`), nil)
	r, ok := Scan(b)
	if !ok || !r.Stream || b.Len() != 15 {
		t.Errorf("%v, %d bytes", ok, b.Len())
	}
}
