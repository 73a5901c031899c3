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
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// The four bodies that requests are measured with: SDK-like, messages first,
// tools and metadata last. Their content comes from a fixed seed.

func chatBody(messages []any, tool string) []byte {
	tools := []any{
		json.RawMessage(`{"type":"function","function":{"name":"get_weather","description":"Returns the weather of a city.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}`),
		json.RawMessage(`{"type":"` + tool + `"}`),
	}
	body, err := json.Marshal(struct {
		Messages    []any             `json:"messages"`
		Model       string            `json:"model"`
		Temperature float64           `json:"temperature"`
		Stream      bool              `json:"stream"`
		Tools       []any             `json:"tools"`
		Metadata    map[string]string `json:"metadata"`
	}{messages, "gpt-5-mini", 0.7, true, tools, map[string]string{"session_id": "s-123456", "team": "red"}})
	if err != nil {
		panic(err)
	}
	return body
}

func textMessages(size int, seed uint64) []any {
	r := rand.New(rand.NewPCG(seed, 2))
	words := strings.Fields("the model answers a question about data with code and says what it found in short sentences")
	var list []any
	for n, i := 0, 0; n < size; i++ {
		var b strings.Builder
		for b.Len() < min(800, size-n) {
			b.WriteString(words[r.IntN(len(words))])
			if b.WriteByte(' '); r.IntN(20) == 0 {
				b.WriteString("\"quoted\"\n")
			}
		}
		n += b.Len() + 40
		list = append(list, map[string]string{"role": []string{"user", "assistant"}[i%2], "content": b.String()})
	}
	return list
}

func imageMessages(size int) []any {
	list := textMessages(100<<10, 1)
	r := rand.New(rand.NewPCG(3, 4))
	for range 5 {
		raw := make([]byte, size/5*3/4)
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		list = append(list, map[string]any{"role": "user", "content": []any{
			map[string]any{"type": "image_url", "image_url": map[string]string{"url": "data:image/png;base64," + base64.StdEncoding.EncodeToString(raw)}},
		}})
	}
	return list
}

func codeMessages(size int, seed uint64) []any {
	r := rand.New(rand.NewPCG(seed, 6))
	name := func() string { return "a_name_of_some_column_of_the_table"[:4+r.IntN(30)] }
	var list []any
	for n, i := 0, 0; n < size; i++ {
		var b strings.Builder
		for b.Len() < min(20_000, size-n) {
			fmt.Fprintf(&b, "    row[\"%s\"] = get_the_number(\"%s\")\n", name(), name())
		}
		n += b.Len() + b.Len()/8
		list = append(list, map[string]string{"role": "user", "content": b.String()})
	}
	return list
}

// measuredBody is one of the four. It is made once, for either kind of tool.
type measuredBody struct {
	name        string
	plain, tool func() []byte
}

func measure(name string, messages func() []any) measuredBody {
	return measuredBody{
		name:  name,
		plain: sync.OnceValue(func() []byte { return chatBody(messages(), "web_search") }),
		tool:  sync.OnceValue(func() []byte { return chatBody(messages(), ToolType) }),
	}
}

var measured = []measuredBody{
	measure("1KB", func() []any { return textMessages(600, 1) }),
	measure("100KB", func() []any { return textMessages(100<<10, 1) }),
	measure("5MBimage", func() []any { return imageMessages(5 << 20) }),
	measure("5MBcode", func() []any { return codeMessages(5<<20, 1) }),
}

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

func BenchmarkScan(b *testing.B) {
	for _, m := range measured {
		data := m.plain()
		b.Run("by=wire/body="+m.name, func(b *testing.B) {
			benchmarkScan(b, NewBody(data))
		})
		b.Run("by=wire32K/body="+m.name, func(b *testing.B) {
			benchmarkScan(b, split(data, 32<<10))
		})
		b.Run("by=encodingjson/body="+m.name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				var v struct {
					Tools []struct {
						Type string `json:"type"`
					} `json:"tools"`
					Metadata struct {
						SessionID string `json:"session_id"`
					} `json:"metadata"`
					Stream bool `json:"stream"`
				}
				if err := json.Unmarshal(data, &v); err != nil || len(v.Tools) != 2 {
					b.Fatal(v, err)
				}
			}
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

// BenchmarkScanOfMany scans texts in turn that differ, so that the processor
// cannot know them by heart, as it does a text of 100 KB after some rounds.
func BenchmarkScanOfMany(b *testing.B) {
	for _, c := range []struct {
		name string
		body func(i int) []byte
	}{
		{"prose", func(i int) []byte { return chatBody(textMessages(100<<10, uint64(i)), "web_search") }},
		{"code", func(i int) []byte { return chatBody(codeMessages(100<<10, uint64(i)), "web_search") }},
	} {
		b.Run("by=wire/body=100KB"+c.name, func(b *testing.B) {
			var bodies [16]*Body
			for i := range bodies {
				bodies[i] = NewBody(c.body(i))
			}
			b.SetBytes(bodies[0].Len())
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if r, ok := Scan(bodies[i%len(bodies)]); !ok || r.HasTool {
					b.Fatal("the scan is wrong")
				}
			}
		})
	}
}

// BenchmarkRewrite measures what a request with the tool costs up to its first
// turn.
func BenchmarkRewrite(b *testing.B) {
	for _, m := range measured {
		body := NewBody(m.tool())
		b.Run("body="+m.name, func(b *testing.B) {
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
	for _, m := range measured {
		r, _ := Scan(NewBody(m.tool()))
		e := r.Rewrite(RewriteOptions{Name: "run_python"})
		b.Run("body="+m.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.Turn(Turn{Appended: appended, Choice: Unforced})
			}
		})
	}
}

// BenchmarkReadBody measures taking a body in, with and without its length.
func BenchmarkReadBody(b *testing.B) {
	for _, m := range measured {
		data := m.plain()
		for _, length := range []struct {
			name  string
			known bool
		}{{"known", true}, {"unknown", false}} {
			b.Run("length="+length.name+"/body="+m.name, func(b *testing.B) {
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
