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

package load

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/upstream"
)

// Content is what the messages of a chat request consist of.
type Content string

// The contents that are measured.
const (
	Text   Content = "text"   // prose with some quotes
	Images Content = "images" // 100 KB of prose and base64 images
	Code   Content = "code"   // source code: an escape about every 20 bytes
	Fill   Content = "fill"   // one capital letter, over and over
)

// Chat is a chat request: like those of an SDK, with tools and metadata last.
type Chat struct {
	Content Content
	// Size of the body in bytes, about.
	Size   int
	Stream bool
	// Tool asks for the code interpreter instead of a function tool.
	Tool bool
	// Session is the session id of a request with the tool; "" is none.
	Session string
	// Fill is the capital letter of the content Fill.
	Fill byte
	// Script is what the upstream does.
	Script upstream.Script
}

// Body returns the body of the request. The same request has the same body.
func (c Chat) Body() []byte {
	type message struct {
		Role    string `json:"role"`
		Content any    `json:"content"`
	}
	contents := c.contents()
	messages := make([]message, 0, len(contents))
	for i, content := range contents {
		messages = append(messages, message{[]string{"user", "assistant"}[i%2], content})
	}
	tool := json.RawMessage(`{"type":"function","function":{"name":"get_weather","description":"returns the weather of a city","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}`)
	if c.Tool {
		tool = json.RawMessage(`{"type":"code_interpreter"}`)
	}
	metadata := map[string]string{"team": "red"}
	if c.Session != "" {
		metadata["session_id"] = c.Session
	}
	body, err := json.Marshal(struct {
		Model       string            `json:"model"`
		Stream      bool              `json:"stream"`
		Messages    []message         `json:"messages"`
		Temperature float64           `json:"temperature"`
		Tools       []json.RawMessage `json:"tools"`
		Metadata    map[string]string `json:"metadata"`
	}{c.Script.Model(), c.Stream, messages, 0.7, []json.RawMessage{tool}, metadata})
	if err != nil {
		panic(err) // strings and numbers always have a form in JSON
	}
	return body
}

func (c Chat) contents() []any {
	switch c.Content {
	case Images:
		return images(c.Size)
	case Code:
		return source(c.Size)
	case Fill:
		return []any{strings.Repeat(string(rune(c.Fill)), c.Size)}
	default:
		return prose(c.Size)
	}
}

// overhead is the size of a request beside its messages.
const overhead = 400

func prose(size int) []any {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same text in every run
	words := strings.Fields("the model answers a question about data with code and says what it found in short sentences")
	list := []any{}
	for left := max(size-overhead, 100); left > 0; {
		var b strings.Builder
		for b.Len() < min(800, left) {
			b.WriteString(words[r.IntN(len(words))])
			if b.WriteByte(' '); r.IntN(20) == 0 {
				b.WriteString("\"quoted\"\n")
			}
		}
		left -= b.Len() + 40
		list = append(list, b.String())
	}
	return list
}

func images(size int) []any {
	const text, count = 100 << 10, 5
	list := prose(min(text, size/2))
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same images in every run
	for range count {
		raw := make([]byte, max(size-text, size/2)/count*3/4)
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		list = append(list, []any{map[string]any{
			"type": "image_url", "image_url": map[string]string{"url": "data:image/png;base64," + base64.StdEncoding.EncodeToString(raw)},
		}})
	}
	return list
}

func source(size int) []any {
	list := []any{}
	for left, line := size, 0; left > 0; {
		var b strings.Builder
		for b.Len() < min(20_000, left) {
			fmt.Fprintf(&b, "    row[\"column_number_%d\"] = get_the_number(\"value_%d_of_the_column\")\n", line%1000, line%100)
			line++
		}
		left -= b.Len() + b.Len()/8
		list = append(list, b.String())
	}
	return list
}

// Request is a request as it goes over the wire, made once and sent often.
type Request struct {
	method string
	wire   []byte
	body   int
}

// NewRequest returns a request with the headers that a client sends. header
// may be nil; a body of nil is none.
func NewRequest(method, path string, body []byte, header http.Header) *Request {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: bench.test\r\nUser-Agent: bench\r\nAccept: application/json\r\n", method, path)
	if body != nil {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n%s: %s\r\n", len(body), upstream.SizeHeader, strconv.Itoa(len(body)))
	}
	for name, values := range header {
		fmt.Fprintf(&b, "%s: %s\r\n", name, values[0])
	}
	b.WriteString("\r\n")
	return &Request{method: method, wire: append([]byte(b.String()), body...), body: len(body)}
}

// ChatRequest returns the request with the API key of the caller.
func ChatRequest(c Chat, caller string) *Request {
	header := http.Header{"Authorization": {"Bearer " + caller}}
	if c.Content == Fill {
		header.Set(upstream.FillHeader, string(rune(c.Fill)))
	}
	r := NewRequest(http.MethodPost, chatPath, c.Body(), header)
	if c.Tool {
		r.forget()
	}
	return r
}

// With returns the request with further headers.
func (r *Request) With(header http.Header) *Request {
	var b bytes.Buffer
	line, rest, _ := bytes.Cut(r.wire, []byte("\r\n"))
	b.Write(line)
	for name, values := range header {
		fmt.Fprintf(&b, "\r\n%s: %s", name, values[0])
	}
	b.WriteString("\r\n")
	b.Write(rest)
	return &Request{method: r.method, wire: b.Bytes(), body: r.body}
}

// CheckedRequest returns the request with its checksum for the upstream.
func CheckedRequest(c Chat) *Request {
	body := c.Body()
	return NewRequest(http.MethodPost, chatPath, body, http.Header{upstream.SumHeader: {upstream.Sum(body)}})
}

const chatPath = "/v1/chat/completions"

// forget takes the size out of a request that the gateway is to change. The
// name of the header stays as long as it was.
func (r *Request) forget() {
	head, body := r.wire[:len(r.wire)-r.body], r.wire[len(r.wire)-r.body:]
	head = []byte(strings.Replace(string(head), upstream.SizeHeader, "X-Bench-Orig", 1))
	r.wire = append(head, body...)
}
