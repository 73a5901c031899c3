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

// Package bodies makes the request bodies that are measured with: SDK-like,
// messages first, tools and metadata last. Their content comes from a fixed
// seed.
package bodies

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
)

// What the bodies have.
const (
	// Tool is the type of the tool that is looked for, in place of OtherTool.
	Tool      = "code_interpreter"
	OtherTool = "web_search"
	// SessionID is what every body has as metadata.session_id.
	SessionID = "s-123456"
)

// Body is one of the four. It is made once, for either kind of tool.
type Body struct {
	Name string
	// Plain has OtherTool, WithTool has Tool.
	Plain, WithTool func() []byte
}

// Measured is the four bodies.
var Measured = []Body{
	named("1KB", func() []any { return Text(600, 1) }),
	named("100KB", func() []any { return Text(100<<10, 1) }),
	named("5MBimage", func() []any { return Images(5 << 20) }),
	named("5MBcode", func() []any { return Code(5<<20, 1) }),
}

func named(name string, messages func() []any) Body {
	return Body{
		Name:     name,
		Plain:    sync.OnceValue(func() []byte { return Chat(messages(), OtherTool) }),
		WithTool: sync.OnceValue(func() []byte { return Chat(messages(), Tool) }),
	}
}

// Chat returns a chat request with the messages, a function tool and a tool of
// the given type.
func Chat(messages []any, tool string) []byte {
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
	}{messages, "gpt-5-mini", 0.7, true, tools, map[string]string{"session_id": SessionID, "team": "red"}})
	if err != nil {
		panic(err)
	}
	return body
}

// Text returns messages of prose with some quotes, of about a size in JSON.
// Another seed is another text.
func Text(size int, seed uint64) []any {
	r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // the same text in every run
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

// Images returns 100 KB of prose and five images in base64 of a size in all.
func Images(size int) []any {
	list := Text(100<<10, 1)
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same images in every run
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

// Code returns messages of source code, with an escape about every 20 bytes.
// Another seed is another code.
func Code(size int, seed uint64) []any {
	r := rand.New(rand.NewPCG(seed, 6)) //nolint:gosec // the same code in every run
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
