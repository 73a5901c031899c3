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
	"runtime"
	"strings"
	"sync"
	"testing"
)

func TestFreeListGivesBackWhatFits(t *testing.T) {
	var f freeList
	f.give(f.take(100_000))
	if f.bytes < 100_000 || len(f.blocks) != 1 {
		t.Fatalf("%d bytes in %d blocks are kept", f.bytes, len(f.blocks))
	}
	for _, size := range []int{10_000, 200_000} {
		if f.take(size); len(f.blocks) != 1 {
			t.Fatalf("%d bytes took a block of %d", size, f.bytes)
		}
	}
	if block := f.take(70_000); len(block) != 70_000 || len(f.blocks) != 0 || f.bytes != 0 {
		t.Errorf("a block of %d, %d bytes left in %d blocks", len(block), f.bytes, len(f.blocks))
	}
}

func TestFreeListIsBounded(t *testing.T) {
	for name, size := range map[string]int{"small": smallBlock, "large": 5 << 20, "as large as the bound": keptBytes, "larger": keptBytes + 1} {
		var f freeList
		for range min(2*keptBlocks, 4*keptBytes/size) {
			f.give(make([]byte, size))
		}
		total := 0
		for _, block := range f.blocks {
			total += cap(block)
		}
		if total != f.bytes || total > keptBytes || len(f.blocks) > keptBlocks || total == 0 && size <= keptBytes {
			t.Errorf("%s: %d bytes in %d blocks are kept, counted as %d", name, total, len(f.blocks), f.bytes)
		}
	}
}

func TestFreeListForgetsTheOldest(t *testing.T) {
	var f freeList
	for range keptBlocks {
		f.give(make([]byte, smallBlock))
	}
	f.give(make([]byte, keptBytes))
	if len(f.blocks) != 1 || f.bytes != keptBytes {
		t.Errorf("%d bytes in %d blocks are kept", f.bytes, len(f.blocks))
	}
}

func TestFreeListKeepsNoCrumbs(t *testing.T) {
	var f freeList
	if f.give(make([]byte, smallBlock-1)); len(f.blocks) != 0 {
		t.Error("a block is kept that is smaller than any that is taken")
	}
}

// readAll returns a body of which every byte is c.
func readAll(t *testing.T, c byte, size int) *Body {
	t.Helper()
	data := bytes.Repeat([]byte{c}, size)
	b, err := ReadBody(bytes.NewReader(data), int64(size), 0)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOpenReaderKeepsTheBody(t *testing.T) {
	const size = 1 << 20
	for name, end := range map[string]func(r io.ReadCloser){
		"closed":       func(r io.ReadCloser) { _ = r.Close() },
		"closed twice": func(r io.ReadCloser) { _, _ = r.Close(), r.Close() },
		"read to the end": func(r io.ReadCloser) {
			if got, err := io.ReadAll(r); err != nil || bytes.Count(got, []byte("a")) != size {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			_ = r.Close()
		},
	} {
		b := readAll(t, 'a', size)
		segments := b.Segments()
		first, second := segments.NewReader(), segments.NewReader()
		b.Release()
		end(first)
		if b.Len() != size {
			t.Fatalf("%s: the body was given back under a reader", name)
		}
		other := readAll(t, 'b', size)
		if got, err := io.ReadAll(second); err != nil || bytes.Count(got, []byte("a")) != size {
			t.Errorf("%s: the other reader got other bytes, or %v", name, err)
		}
		if b.Len() != 0 {
			t.Errorf("%s: the body was not given back", name)
		}
		other.Release()
	}
}

func TestClosedReaderReadsNothing(t *testing.T) {
	b := readAll(t, 'a', 100)
	segments := b.Segments()
	r := segments.NewReader()
	if n, err := r.Read(make([]byte, 10)); n != 10 || err != nil {
		t.Fatal(n, err)
	}
	_ = r.Close()
	b.Release()
	for name, r := range map[string]io.Reader{"closed": r, "made too late": segments.NewReader()} {
		if n, err := r.Read(make([]byte, 10)); n != 0 || !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

func TestTurnHoldsTheBody(t *testing.T) {
	body := `{"messages":[{"role":"user","content":"` + strings.Repeat("a", 100_000) + `"}],"tools":[{"type":"code_interpreter"}]}`
	b, err := ReadBody(strings.NewReader(body), int64(len(body)), 0)
	if err == nil {
		err = b.Complete()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, _ := Scan(b)
	turn := r.Rewrite(RewriteOptions{Name: "run_python"}).Turn(Turn{})
	want := turn.Bytes()
	reader := turn.NewReader()
	b.Release()
	if other := readAll(t, 'b', len(body)); b.Len() == 0 || other.Len() == 0 {
		t.Fatal("the body was given back")
	}
	if got, err := io.ReadAll(reader); err != nil || !bytes.Equal(got, want) {
		t.Errorf("other bytes were read, or %v", err)
	}
}

// Bodies are read by several goroutines each, some of which close before the
// end or while another one reads, and none sees a byte of another body.
func TestBodiesKeepApart(t *testing.T) {
	const goroutines, rounds = 8, 50
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range rounds {
				letter := byte('a' + (g*rounds+i)%26)
				size := 1000 + 30_000*((g+i)%5)
				b, err := ReadBody(bytes.NewReader(bytes.Repeat([]byte{letter}, size)), int64(size), 0)
				if err != nil {
					t.Error(err)
					return
				}
				for n := range 3 {
					r := b.Segments().NewReader()
					all.Go(func() { onlyLetter(t, r, letter, n < 2) })
					if n == 1 {
						all.Go(func() { _ = r.Close() })
					}
				}
				b.Release()
			}
		})
	}
	all.Wait()
}

// onlyLetter reads a reader in pieces, and closes it in the middle or at the
// end.
func onlyLetter(t *testing.T, r io.ReadCloser, letter byte, whole bool) {
	p := make([]byte, 500)
	for i := 0; whole || i < 3; i++ {
		n, err := r.Read(p)
		if bytes.Count(p[:n], []byte{letter}) != n {
			t.Errorf("%q was read from a body of %q", p[:n], letter)
		}
		if err != nil {
			break
		}
	}
	_ = r.Close()
}

func TestReusedBodyAllocatesNoBlock(t *testing.T) {
	data := bytes.Repeat([]byte("a"), 100_000)
	r := bytes.NewReader(data)
	pass := func() {
		r.Reset(data)
		b, err := ReadBody(r, int64(len(data)), 0)
		if err != nil {
			t.Fatal(err)
		}
		reader := b.Segments().NewReader()
		b.Release()
		_ = reader.Close()
	}
	pass()
	const times = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		pass()
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / times; n > 5_000 {
		t.Errorf("%d bytes allocated for a body of %d", n, len(data))
	}
}
