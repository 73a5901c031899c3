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
	"strings"
	"testing"
)

// plainText is a chunk as most of them are.
const plainText = `{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"m","service_tier":"default","system_fingerprint":null,` +
	`"choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}`

// A chunk of plain text costs no memory but what the answer itself grows by.
func TestPlainTextAllocatesNothing(t *testing.T) {
	var (
		splitter Splitter
		chunk    Chunk
		a        Answer
		s        = Stream{Tools: &testTools}
		event    = []byte("data: " + plainText + "\n\n")
	)
	emit := func(ev *Event) error {
		if a.Event(ev, &chunk) && !a.Over() {
			s.Chunk(&chunk, &a)
		}
		return nil
	}
	feed := func() {
		if err := splitter.Feed(event, emit); err != nil {
			t.Fatal(err)
		}
		if len(s.Take()) == 0 {
			t.Fatal("the client got nothing")
		}
		content := a.message.get("content")
		content.value = content.value[:0] // it would grow
	}
	feed()
	if n := testing.AllocsPerRun(1000, feed); n != 0 {
		t.Errorf("%v allocations for a chunk of plain text", n)
	}
}

func BenchmarkSplitter(b *testing.B) {
	stream := []byte(strings.Repeat("data: "+plainText+"\n\n", 1000))
	for _, c := range []struct {
		name string
		size int
	}{{"256B", 256}, {"32KB", 32 << 10}} {
		b.Run(c.name, func(b *testing.B) {
			var s Splitter
			n := 0
			emit := func(*Event) error { n++; return nil }
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				for rest := stream; len(rest) > 0; {
					p := rest[:min(c.size, len(rest))]
					if err := s.Feed(p, emit); err != nil {
						b.Fatal(err)
					}
					rest = rest[len(p):]
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/event")
		})
	}
}

func BenchmarkChunk(b *testing.B) {
	for _, c := range []struct{ name, data string }{
		{"text", plainText},
		{"role rewritten", strings.Replace(plainText, `"delta":{`, `"delta":{"role":"assistant",`, 1)},
		{"id rewritten", strings.Replace(plainText, "chatcmpl-123", "chatcmpl-124", 1)},
	} {
		b.Run(c.name, func(b *testing.B) {
			var chunk, first Chunk
			var a Answer
			s := Stream{Tools: &testTools}
			first.Parse([]byte(strings.Replace(plainText, `"delta":{`, `"delta":{"role":"assistant",`, 1)))
			a.Observe(&first)
			s.Chunk(&first, &a)
			data := []byte(c.data)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				chunk.Parse(data)
				a.Observe(&chunk)
				s.Chunk(&chunk, &a)
				s.Take()
				p := a.message.get("content")
				p.value = p.value[:0]
			}
		})
	}
}

func BenchmarkAssembler(b *testing.B) {
	fragment := []byte(piece("0", "", "", "print(1)\n"))
	named := []byte(piece("0", "a", "run_python", "print(1)\n"))
	for _, c := range []struct {
		name     string
		fragment []byte
	}{{"by index", fragment}, {"by id and name", named}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var a Assembler
				a.add([]byte(piece("0", "a", "run_python", `{"code":"`)))
				for range 1000 {
					a.begin()
					a.add(c.fragment)
				}
			}
		})
	}
}

func BenchmarkReasoningDetails(b *testing.B) {
	var c Chunk
	c.Parse([]byte(`{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","text":" token","format":null,"index":0}]}}]}`))
	b.ReportAllocs()
	for b.Loop() {
		var a Answer
		for range 1000 {
			a.Observe(&c)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	p := play(b, textChunk("I will compute it.")+calling(piece("0", "a", "run_python", program(strings.Repeat("print(6*7)\n", 100))))+finished+streamEnd, 0, testTools)
	calls := p.answer.Calls()
	b.Run("program", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			calls[0].Program()
		}
	})
	echoed := []Echoed{{Call: calls[0], Arguments: calls[0].Program().Echo}}
	b.Run("echo", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.answer.Echo(echoed, Dropped{})
		}
	})
	b.Run("clean", func(b *testing.B) {
		output := strings.Repeat("\x1b[31merror\x1b[0m: 10%\r20%\n", 500)
		b.SetBytes(int64(len(output)))
		b.ReportAllocs()
		for b.Loop() {
			CapText(CleanText(output), 1000)
		}
	})
}
