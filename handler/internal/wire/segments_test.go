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
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/iotest"
)

func segmentsOf(texts ...string) *Segments {
	s := &Segments{}
	for _, text := range texts {
		s.add([]byte(text))
	}
	return s
}

// Bytes returns a joined copy.
func (s *Segments) Bytes() []byte {
	var b bytes.Buffer
	if n, err := s.WriteTo(&b); err != nil || n != s.size {
		panic(fmt.Sprintf("%d of %d bytes, %v", n, s.size, err))
	}
	return b.Bytes()
}

func TestSegmentsReadAsOneText(t *testing.T) {
	for _, c := range []struct {
		s    *Segments
		want string
	}{
		{segmentsOf(), ""},
		{segmentsOf("", ""), ""},
		{segmentsOf("abc"), "abc"},
		{segmentsOf("a", "", "bc", "def", ""), "abcdef"},
	} {
		if err := iotest.TestReader(c.s.NewReader(), []byte(c.want)); err != nil {
			t.Errorf("%q: %v", c.want, err)
		}
		var b bytes.Buffer
		if n, err := c.s.WriteTo(&b); err != nil || n != int64(len(c.want)) || b.String() != c.want {
			t.Errorf("WriteTo wrote %q, %d, %v, want %q", b.String(), n, err, c.want)
		}
		if got := string(c.s.Bytes()); got != c.want || c.s.Len() != int64(len(c.want)) {
			t.Errorf("Bytes are %q, Len is %d, want %q", got, c.s.Len(), c.want)
		}
	}
}

// failing takes some bytes and then no more.
type failing struct{ left int }

var errFull = errors.New("full")

func (w *failing) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	if w.left -= n; n < len(p) {
		return n, errFull
	}
	return n, nil
}

func TestSegmentsReportHowMuchWasWritten(t *testing.T) {
	for left := range 6 {
		s := segmentsOf("abc", "def")
		if n, err := s.WriteTo(&failing{left}); !errors.Is(err, errFull) || n != int64(left) {
			t.Errorf("WriteTo with room for %d: %d, %v", left, n, err)
		}
	}
}

// A transport may read the body of one turn while the next is being made, and
// read it again from the start over another connection.
func TestSegmentsAreReadWhileFurtherTurnsAreMade(t *testing.T) {
	r := follow(t, `{"messages":[{"role":"user"}],"tools":[{"type":"code_interpreter"}],"metadata":{"session_id":"s"}}`)
	e := r.Rewrite(RewriteOptions{Name: "run_python"})
	appended := make([][]byte, 0, 40)
	var wg sync.WaitGroup
	for range 20 {
		s := e.Turn(Turn{Appended: appended, Choice: Unforced})
		want := s.Bytes()
		for range 2 {
			wg.Go(func() {
				if got, err := io.ReadAll(s.NewReader()); err != nil || !bytes.Equal(got, want) {
					t.Errorf("read %q, %v, want %q", got, err, want)
				}
			})
		}
		appended = append(appended, []byte(`{"role":"assistant"}`), []byte(`{"role":"tool"}`))
	}
	wg.Wait()
}
