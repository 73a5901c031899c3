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
	"reflect"
	"strings"
	"testing"
)

// sameAsAnew fails unless a chunk that has read others reads data like one that
// has not.
func sameAsAnew(t *testing.T, used *Chunk, data string) {
	t.Helper()
	var anew Chunk
	got, want := used.Parse([]byte(data)), anew.Parse([]byte(data))
	if got != want {
		t.Fatalf("%v instead of %v for %q", got, want, data)
	}
	if !got {
		return
	}
	if g, w := found(used), found(&anew); !reflect.DeepEqual(g, w) {
		t.Fatalf("%q is read as\n%+v, not\n%+v", data, g, w)
	}
}

// found is all that a chunk has found.
func found(c *Chunk) Chunk {
	f := *c
	f.text, f.list, f.frame = text{data: c.data}, nil, frame{}
	for _, list := range []*[]member{&f.top, &f.choice, &f.delta} {
		*list = append([]member{}, *list...)
	}
	return f
}

// texts are what can stand in a string, and some of what cannot.
var texts = []string{
	"", "a", " token", `\n`, `\"`, `\\`, `\\\"`, `\\\\`, `\u0022`, "\u00e4\U0001F600", "\x00\n", "\xff", "null", "}", "]}", "data: {",
	strings.Repeat("long ", 50), strings.Repeat(`\"`, 30),
	`"`, `\`, `\\\`, `"}`, `","x":"`, `"},"finish_reason":"stop`, `","tool_calls":[{"index":0}],"y":"`, `","error":{"message":"m"},"y":"`,
}

// frames are chunks in which % stands for a text.
var frames = []string{
	`{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"%"},"logprobs":null,"finish_reason":null}]}`,
	`{"choices":[{"index":0,"delta":{"role":"assistant","content":"%"}}],"id":"x","usage":null,"obfuscation":"%"}`,
	`{"padding":"%","id":"x","choices":[{"finish_reason":null,"delta":{"content":null,"reasoning_content":"%","reasoning":"%"},"index":0}],"created":2}`,
	`{"a":"%","b":"%","choices":[{"index":0,"delta":{"content":"%","c":"%","d":"%"}}]}`,
	`{"error":"%","choices":[{"index":0,"delta":{"content":"%"}}]}`,
	`{"\u0065rror":"%","choices":[{"index":0,"delta":{"content":"%"}}]}`,
	`{"id":"%","choices":[{"index":0,"delta":{"content":"%"}}]}`,
	`{"choices":"%","choices":[{"index":0,"delta":{"content":"%"},"usage":"%"}]}`,
	`{"choices":[{"index":0,"delta":{"content":"%"},"finish_reason":"%"}]}`,
	`{"choices":[{"index":0,"delta":{"role":"%","content":"a"}}]}`,
	`{"choices":[{"index":0,"delta":{"tool_calls":"%","content":"a"}}]}`,
	`{"choices":[{"index":0,"message":{"content":"%"}}]}`,
	`{"choices":[{"index":0,"delta":{"content":"%"},"message":{"content":"%"}}]}`,
	`{"choices":[{"index":0,"delta":{"content":"%"}},{"index":1,"delta":{"content":"%"}}]}`,
	`{"choices":[],"object":"error","message":"%"}`,
	`{"%":1,"choices":[{"index":0,"delta":{"%":"%"}}]}`,
	` { "choices" : [ { "index" : 0 , "delta" : { "content" : "%" } } ] , "x" : "%" } `,
}

func TestChunksOfOneFrameAreReadLikeAnyOther(t *testing.T) {
	for _, form := range frames {
		for _, first := range texts[:6] {
			for _, second := range texts {
				var c Chunk
				sameAsAnew(t, &c, strings.ReplaceAll(form, "%", first))
				sameAsAnew(t, &c, strings.ReplaceAll(form, "%", second))
				sameAsAnew(t, &c, strings.Replace(strings.ReplaceAll(form, "%", first), "1", "2", 1))
				sameAsAnew(t, &c, strings.Replace(strings.Replace(form, "%", second, 1), "%", first, 3))
			}
		}
	}
}

func TestChunksOfOtherFramesAreReadInFull(t *testing.T) {
	var c Chunk
	for _, first := range frames {
		for _, second := range frames {
			for _, form := range []string{first, second, first[:len(first)-1], "[]", first} {
				sameAsAnew(t, &c, strings.ReplaceAll(form, "%", "ab"))
			}
		}
	}
}

func TestFrameFitsChunksOfText(t *testing.T) {
	for _, form := range frames[:3] {
		var c Chunk
		c.Parse([]byte(strings.ReplaceAll(form, "%", "")))
		for _, s := range []string{"a", "", `\"quoted\"\n`, strings.Repeat("long ", 100)} {
			if !c.again([]byte(strings.ReplaceAll(form, "%", s))) {
				t.Errorf("%q in %s was not read by its frame", s, form)
			}
		}
	}
}

func TestReleasedChunkHasNothingOfTheLastOne(t *testing.T) {
	var c Chunk
	if !c.Parse([]byte(strings.ReplaceAll(frames[0], "%", "a"))) {
		t.Fatal("no chunk")
	}
	c.clear()
	if c.data != nil || c.HasChoice() || c.again([]byte(strings.ReplaceAll(frames[0], "%", "a"))) || !reflect.DeepEqual(found(&c), found(&Chunk{})) {
		t.Errorf("%+v is left", found(&c))
	}
}

// A chunk says the same of an event whatever it has read before.
func FuzzChunkAgain(f *testing.F) {
	for _, form := range frames {
		f.Add(form, "a", `\"`, form)
	}
	for _, text := range texts {
		f.Add(frames[1], "a", text, frames[0])
	}
	f.Fuzz(func(t *testing.T, form, first, second, other string) {
		var c Chunk
		for _, data := range []string{
			strings.ReplaceAll(form, "%", first), strings.ReplaceAll(form, "%", second),
			strings.Replace(strings.Replace(form, "%", second, 1), "%", first, 1), other, strings.ReplaceAll(other, "%", second),
		} {
			sameAsAnew(t, &c, string(bytes.TrimSpace([]byte(data))))
		}
	})
}
