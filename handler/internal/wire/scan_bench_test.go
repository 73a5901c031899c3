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
	"io"
	"testing"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire/bodies"
)

// split returns a body in blocks of a size.
func split(data []byte, size int) *Body {
	b := NewBody()
	for len(data) > 0 {
		n := min(size, len(data))
		b.add(data[:n])
		data = data[n:]
	}
	return b
}

// BenchmarkScan measures the scan alone. Beside what others make of the same
// bodies it stands in the module peers.
func BenchmarkScan(b *testing.B) {
	for _, m := range bodies.Measured {
		data := m.Plain()
		b.Run("by=wire/body="+m.Name, func(b *testing.B) {
			benchmarkScan(b, NewBody(data))
		})
		b.Run("by=wire32K/body="+m.Name, func(b *testing.B) {
			benchmarkScan(b, split(data, 32<<10))
		})
	}
}

func benchmarkScan(b *testing.B, body *Body) {
	b.SetBytes(body.Len())
	b.ReportAllocs()
	for b.Loop() {
		if r, ok := Scan(body); !ok || r.HasTool {
			b.Fatal("the scan is wrong")
		}
	}
}

// many is what scans are measured with that the processor cannot know by heart,
// as it does a text of 100 KB after some rounds: texts in turn that differ.
var many = []struct {
	name string
	body func(seed uint64) []byte
}{
	{"prose", func(seed uint64) []byte { return bodies.Chat(bodies.Text(100<<10, seed), bodies.OtherTool) }},
	{"code", func(seed uint64) []byte { return bodies.Chat(bodies.Code(100<<10, seed), bodies.OtherTool) }},
}

func benchmarkMany(b *testing.B, edit func([]byte) []byte, scan func(*Body) bool) {
	for _, m := range many {
		b.Run("by=wire/body=100KB"+m.name, func(b *testing.B) {
			var turns [16]*Body
			for i := range turns {
				turns[i] = NewBody(edit(m.body(uint64(i))))
			}
			b.SetBytes(turns[0].Len())
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if !scan(turns[i%len(turns)]) {
					b.Fatal("the scan is wrong")
				}
			}
		})
	}
}

func BenchmarkScanOfMany(b *testing.B) {
	benchmarkMany(b, bytes.Clone, func(body *Body) bool {
		r, ok := Scan(body)
		return ok && !r.HasTool
	})
}

// withoutSession is a request that has nothing to be found by a glance.
func withoutSession(data []byte) []byte {
	return bytes.ReplaceAll(data, []byte(`"session_id"`), []byte(`"sessions"`))
}

// BenchmarkGlance measures the look at requests that have neither the tool nor a
// session id, which are not scanned.
func BenchmarkGlance(b *testing.B) {
	for _, m := range bodies.Measured {
		body := NewBody(withoutSession(m.Plain()))
		b.Run("by=wire/body="+m.Name, func(b *testing.B) {
			b.SetBytes(body.Len())
			b.ReportAllocs()
			for b.Loop() {
				if body.MayConcern() {
					b.Fatal("the glance is wrong")
				}
			}
		})
	}
}

func BenchmarkGlanceOfMany(b *testing.B) {
	benchmarkMany(b, withoutSession, func(body *Body) bool { return !body.MayConcern() })
}

// BenchmarkRewrite measures what a request with the tool costs up to its first
// turn.
func BenchmarkRewrite(b *testing.B) {
	for _, m := range bodies.Measured {
		body := NewBody(m.WithTool())
		b.Run("body="+m.Name, func(b *testing.B) {
			b.SetBytes(body.Len())
			b.ReportAllocs()
			for b.Loop() {
				r, _ := Scan(body)
				r.Rewrite(RewriteOptions{Name: "run_python"}).Turn(Turn{})
			}
		})
	}
}

// BenchmarkTurn measures what each further turn costs.
func BenchmarkTurn(b *testing.B) {
	appended := [][]byte{[]byte(`{"role":"assistant"}`), []byte(`{"role":"tool"}`)}
	for _, m := range bodies.Measured {
		r, _ := Scan(NewBody(m.WithTool()))
		e := r.Rewrite(RewriteOptions{Name: "run_python"})
		b.Run("body="+m.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.Turn(Turn{Appended: appended, Choice: Unforced})
			}
		})
	}
}

// BenchmarkReadBody measures taking a body in, with and without its length.
func BenchmarkReadBody(b *testing.B) {
	for _, m := range bodies.Measured {
		data := m.Plain()
		for _, length := range []struct {
			name  string
			known bool
		}{{"known", true}, {"unknown", false}} {
			b.Run("length="+length.name+"/body="+m.Name, func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				n := int64(-1)
				if length.known {
					n = int64(len(data))
				}
				for b.Loop() {
					body, err := ReadBody(io.NopCloser(bytes.NewReader(data)), n, 0)
					if err != nil {
						b.Fatal(err)
					}
					body.Release()
				}
			})
		}
	}
}
