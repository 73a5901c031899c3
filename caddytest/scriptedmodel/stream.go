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

package scriptedmodel

import (
	"context"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"
)

// piece is the number of bytes after which texts and arguments are divided,
// at the next boundary of characters.
const piece = 12

// stream sends an answer as server-sent events.
func (m *Model) stream(ctx context.Context, w http.ResponseWriter, req *request, a answer, u usage) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	s := &sender{
		w: w, usage: u, withUsage: req.StreamOptions.IncludeUsage, delay: max(m.Delay, a.script.slow),
		head: chunk{ID: newID(), Object: "chat.completion.chunk", Created: time.Now().Unix(), Model: req.Model},
	}
	deltas := a.deltas()
	for i, d := range deltas {
		if i > 0 && i >= len(deltas)/2 {
			if a.faults.cut {
				panic(http.ErrAbortHandler)
			}
			if a.faults.failStream {
				s.data(scripted(http.StatusInternalServerError).body())
				return
			}
		}
		if !s.delta(ctx, d, nil) || i == 0 && !wait(ctx, a.faults.silent) {
			return
		}
	}
	if s.delta(ctx, delta{}, &a.finish) && s.finish(ctx) {
		s.data("[DONE]")
	}
}

// deltas divides an answer: the role, the text in pieces, then each call with
// its name first and its arguments in pieces.
func (a answer) deltas() []delta {
	empty := ""
	out := []delta{{Role: "assistant", Content: &empty}}
	for _, p := range pieces(a.text) {
		out = append(out, delta{Content: &p})
	}
	for i, c := range a.calls {
		out = append(out, delta{ToolCalls: []toolCall{{
			Index: &i, ID: c.id, Type: "function", Function: &functionCall{Name: c.name},
		}}})
		for _, p := range pieces(c.arguments) {
			out = append(out, delta{ToolCalls: []toolCall{{Index: &i, Function: &functionCall{Arguments: p}}}})
		}
	}
	return out
}

// pieces divides s without dividing a character.
func pieces(s string) []string {
	var out []string
	for len(s) > piece {
		n := piece
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	if s != "" {
		out = append(out, s)
	}
	return out
}

// sender writes the chunks of one stream. Its methods report whether the
// client is still there.
type sender struct {
	w         http.ResponseWriter
	head      chunk
	usage     usage
	withUsage bool
	delay     time.Duration
	sent      int
}

func (s *sender) delta(ctx context.Context, d delta, finish *string) bool {
	c := s.head
	c.Choices = []chunkChoice{{Delta: d, FinishReason: finish}}
	return s.chunk(ctx, c)
}

// finish sends the usage when the client asked for it.
func (s *sender) finish(ctx context.Context) bool {
	if !s.withUsage {
		return true
	}
	c := s.head
	c.Choices, c.Usage = []chunkChoice{}, &s.usage
	return s.chunk(ctx, c)
}

func (s *sender) chunk(ctx context.Context, c chunk) bool {
	if s.sent > 0 && !wait(ctx, s.delay) {
		return false
	}
	s.sent++
	return s.data(encode(c))
}

func (s *sender) data(text string) bool {
	if _, err := fmt.Fprintf(s.w, "data: %s\n\n", text); err != nil {
		return false
	}
	return http.NewResponseController(s.w).Flush() == nil
}
