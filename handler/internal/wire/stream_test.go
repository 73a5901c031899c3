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
	"fmt"
	"slices"
	"strings"
	"testing"
)

func textChunk(s string) string { return chunkOf(`{"content":`+quote(s)+`}`, "null") }

// turns are whole turns and what a client makes of them.
var turns = []struct {
	name, turn string
	want       clientView
}{
	{"text", chunkOf(`{"role":"assistant","content":""}`, "null") + textChunk("a") + textChunk("b") + chunkOf(`{}`, `"stop"`) + streamEnd, clientView{text: "ab", finish: "stop"}},
	{"finish_reason empty until the end", chunkOf(`{"role":"assistant","content":"a"}`, `""`) + chunkOf(`{"content":"b"}`, `""`) + chunkOf(`{}`, `"stop"`), clientView{text: "ab", finish: "stop"}},
	{"finish_reason that is no string", chunkOf(`{"content":"a"}`, `false`) + chunkOf(`{"content":"b"}`, `"stop"`), clientView{text: "ab", finish: "stop"}},
	{"finish_reason null in words", chunkOf(`{"content":"a"}`, `"null"`) + chunkOf(`{"content":"b"}`, `"stop"`), clientView{text: "ab", finish: "stop"}},
	{"finish_reason never", textChunk("a") + streamEnd, clientView{text: "a", finish: "stop"}},
	{"finish_reason twice", textChunk("a") + chunkOf(`{}`, `"stop"`) + chunkOf(`{}`, `"stop"`) + streamEnd, clientView{text: "a", finish: "stop"}},
	{"text after the finish_reason", textChunk("a") + chunkOf(`{}`, `"stop"`) + textChunk("b") + streamEnd, clientView{text: "ab", finish: "stop"}},
	{"text with each finish_reason", chunkOf(`{"content":"a"}`, `"stop"`) + chunkOf(`{"content":"b"}`, `"stop"`), clientView{text: "ab", finish: "stop"}},
	{"usage with text", `data: {"id":"cc-1","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"total_tokens":3}}` + "\n\n", clientView{text: "a", finish: "stop", usage: `{"total_tokens":3}`}},
	{"usage in each chunk", `data: {"id":"cc-1","choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"total_tokens":1}}` + "\n\n" +
		`data: {"id":"cc-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"total_tokens":2}}` + "\n\n" +
		`data: {"id":"cc-1","choices":null,"usage":{}}` + "\n\n", clientView{text: "a", finish: "stop", usage: `{"total_tokens":2}`}},
	{"usage in the choice", textChunk("a") + `data: {"id":"cc-1","choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"total_tokens":2}}]}` + "\n\n", clientView{text: "a", finish: "stop", usage: `{"total_tokens":2}`}},
	{"usage without choices", textChunk("a") + chunkOf(`{}`, `"stop"`) + "data: {\"usage\":{\"total_tokens\":2}}\n\n", clientView{text: "a", finish: "stop", usage: `{"total_tokens":2}`}},
	{"role late", textChunk("a") + chunkOf(`{"role":"assistant"}`, "null") + chunkOf(`{}`, `"stop"`), clientView{text: "a", finish: "stop"}},
	{"role in each chunk", chunkOf(`{"role":"assistant","content":"a"}`, "null") + chunkOf(`{"role":"assistant","content":"b"}`, `"stop"`), clientView{text: "ab", finish: "stop"}},
	{"role of another", chunkOf(`{"role":"","content":"a"}`, "null") + chunkOf(`{"role":"model","content":"b"}`, "null") + chunkOf(`{"role":"assistant","content":"c"}`, `"stop"`), clientView{text: "abc", finish: "stop"}},
	{"id that changes", `data: {"id":"x","choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n" + textChunk("b") + chunkOf(`{}`, `"stop"`), clientView{text: "ab", finish: "stop"}},
	{"id empty, null, missing, a number", `data: {"id":"","choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n" + `data: {"id":null,"choices":[{"index":0,"delta":{"content":"b"}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"content":"c"}}]}` + "\n\n" + `data: {"id":4,"choices":[{"index":0,"delta":{"content":"d"}}]}` + "\n\n", clientView{text: "abcd", finish: "stop"}},
	{"index of the choice", `data: {"id":"x","choices":[{"index":1,"delta":{"content":"a"}}]}` + "\n\n" + `data: {"id":"x","choices":[{"index":"0","delta":{"content":"b"}}]}` + "\n\n" + `data: {"id":"x","choices":[{"index":null,"delta":{"content":"c"}}]}` + "\n\n", clientView{text: "abc", finish: "stop"}},
	{"delta null or missing", `data: {"id":"x","choices":[{"index":0,"delta":null}]}` + "\n\n" + textChunk("a") + `data: {"id":"x","choices":[{"index":0,"finish_reason":"stop"}]}` + "\n\n", clientView{text: "a", finish: "stop"}},
	{"message instead of delta", `data: {"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"a"}}]}` + "\n\n" + chunkOf(`{}`, `"stop"`), clientView{text: "a", finish: "stop"}},
	{"message beside delta", `data: {"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"ab"},"delta":{"content":"a"}}]}` + "\n\n" + textChunk("b") + chunkOf(`{}`, `"stop"`), clientView{text: "ab", finish: "stop"}},
	{"two choices", `data: {"id":"x","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"},{"index":1,"delta":{"content":"b"},"finish_reason":"stop"}]}` + "\n\n", clientView{text: "a", finish: "stop"}},
	{"message at the end", textChunk("a") + textChunk("b") + `data: {"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"ab"},"finish_reason":"stop"}]}` + "\n\n", clientView{text: "ab", finish: "stop"}},
	{"an error in an array", "data: [{\"error\":{\"message\":\"m\"}}]\n\n", clientView{failure: `{"message":"m"}`}},
	{"an array that is no error", "data: []\n\n" + textChunk("a") + streamEnd, clientView{text: "a", finish: "stop"}},
	{"content in parts", chunkOf(`{"content":[{"type":"text","text":"a"}]}`, "null") + textChunk("b") + chunkOf(`{}`, `"stop"`), clientView{text: "ab", finish: "stop"}},
	{"choices empty first", `data: {"id":"","model":"","object":"","choices":[],"prompt_filter_results":[]}` + "\n\n" + textChunk("a") + chunkOf(`{}`, `"stop"`), clientView{text: "a", finish: "stop"}},
	{"choices null", `data: {"id":"x","choices":null}` + "\n\n" + textChunk("a") + chunkOf(`{}`, `"stop"`), clientView{text: "a", finish: "stop"}},
	{"a choice that is none", `data: {"id":"x","choices":[null]}` + "\n\n" + `data: {"id":"x","choices":[7]}` + "\n\n" + textChunk("a") + chunkOf(`{}`, `"stop"`), clientView{text: "a", finish: "stop"}},
	{"pings", ": x\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\ndata: ping\n\ndata:\n\n" + textChunk("a") + chunkOf(`{}`, `"stop"`), clientView{text: "a", finish: "stop"}},
	{"reasoning", chunkOf(`{"reasoning_content":"r"}`, "null") + textChunk("a") + chunkOf(`{}`, `"stop"`), clientView{text: "a", reasoning: "r", finish: "stop"}},
	{"an error", textChunk("a") + "data: {\"error\":{\"message\":\"m\",\"code\":429}}\n\n" + textChunk("b") + streamEnd, clientView{text: "a", failure: `{"message":"m","code":429}`}},
	{"an error named as one", textChunk("a") + "event: error\ndata: {\"message\":\"m\"}\n\n", clientView{text: "a", failure: `{"message":"m"}`}},
	{"an error in the name of the field", "error: {\"message\":\"m\",\"code\":500}\n\n", clientView{failure: `{"message":"m","code":500}`}},
	{"an error as text", "event: error\ndata: overloaded\n\n", clientView{failure: `{"message":"overloaded","type":"upstream_error","param":null,"code":null}`}},
	{"an error that is a string", `data: {"error":"m","error_type":"validation"}` + "\n\n", clientView{failure: `{"message":"m","type":"upstream_error","param":null,"code":null}`}},
	{"an error without that member", `data: {"object":"error","message":"m","code":400}` + "\n\n", clientView{failure: `{"object":"error","message":"m","code":400}`}},
	{"no error", `data: {"error":null,"id":"x","choices":[{"delta":{"content":"a"}}]}` + "\n\n" + `data: {"error":"","id":"x","choices":[{"delta":{"content":"b"}}]}` + "\n\n" + chunkOf(`{}`, `"stop"`), clientView{text: "ab", finish: "stop"}},
	{"a call of ours leaves no trace", textChunk("a") + calling(piece("0", "x", "run_python", program("1"))) + textChunk("b") + finished, clientView{text: "ab", finish: "tool_calls"}},
	{
		"calls of both", calling(piece("0", "x", "run_python", "")) + calling(piece("0", "", "", `{"code":"1"}`)) + calling(piece("1", "y", "get_weather", "")) + calling(piece("1", "", "", `{"city":`)) +
			calling(piece("1", "", "", `"Oslo"}`)) + calling(piece("2", "z", "get_weather", `{}`)) + finished,
		clientView{finish: "tool_calls", calls: []seenCall{{"y", "get_weather", `{"city":"Oslo"}`}, {"z", "get_weather", "{}"}}},
	},
	{
		"a call of the client with an object", calling(`{"id":"y","function":{"name":"functions.get_weather","arguments":{"city":"Oslo"}}}`) + finished,
		clientView{finish: "tool_calls", calls: []seenCall{{"y", "get_weather", `{"city":"Oslo"}`}}},
	},
	{
		"a call of the client with a name in pieces", calling(piece("0", "y", "get_", "")) + calling(piece("0", "", "weather", "")) + calling(piece("0", "", "", "{}")) + finished,
		clientView{finish: "tool_calls", calls: []seenCall{{"y", "get_weather", "{}"}}},
	},
	{
		"a name in a namespace in each fragment", calling(piece("0", "y", "functions.get_weather", `{"city":`)) + calling(piece("0", "y", "functions.get_weather", `"Oslo"}`)) + finished,
		clientView{finish: "tool_calls", calls: []seenCall{{"y", "get_weather", `{"city":"Oslo"}`}}},
	},
	{
		"calls without arguments in order", calling(piece("0", "y", "get_weather", "")) + calling(piece("1", "z", "get_weather", "")) + calling(piece("1", "", "", "{}")) + finished,
		clientView{finish: "tool_calls", calls: []seenCall{{"y", "get_weather", ""}, {"z", "get_weather", "{}"}}},
	},
	{
		"the last fragment with the finish_reason", calling(piece("0", "y", "get_weather", `{"city":`)) + chunkOf(`{"tool_calls":[`+piece("0", "", "", `"Oslo"}`)+`]}`, `"tool_calls"`),
		clientView{finish: "tool_calls", calls: []seenCall{{"y", "get_weather", `{"city":"Oslo"}`}}},
	},
	{
		"a call of the client after the finish_reason", finished + calling(piece("0", "y", "get_weather", "{}")) + streamEnd,
		clientView{finish: "tool_calls", calls: []seenCall{{"y", "get_weather", "{}"}}},
	},
}

func TestTheClientGetsOneGoodStream(t *testing.T) {
	for _, c := range turns {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, c.turn, 0, testTools)
			got := viewOf(t, p.client)
			got.id = ""
			if got.text != c.want.text || got.reasoning != c.want.reasoning || got.finish != c.want.finish || got.usage != c.want.usage || !slices.Equal(got.calls, c.want.calls) {
				t.Errorf("the client sees %+v, want %+v", got, c.want)
			}
			if got.failure != c.want.failure {
				t.Errorf("failure %s, want %s", got.failure, c.want.failure)
			}
			if s := string(p.client); strings.Contains(s, "run_python") {
				t.Errorf("a trace of the tool in\n%s", s)
			}
			for _, cut := range []int{1, 7, 64} {
				cutUp := viewOf(t, play(t, c.turn, cut, testTools).client)
				cutUp.id = ""
				if cutUp.text != got.text || cutUp.finish != got.finish || !slices.Equal(cutUp.calls, got.calls) || cutUp.failure != got.failure {
					t.Errorf("cut at %d: %+v, not %+v", cut, cutUp, got)
				}
			}
		})
	}
}

// Chunks that need no change keep their bytes, whatever is in them.
func TestUntouchedChunksKeepTheirBytes(t *testing.T) {
	first := `{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","service_tier":"default","system_fingerprint":null,"obfuscation":"aB\u0039",` +
		`"choices":[{"index":0,"delta":{"role":"assistant","content":"<a&b> \u00e9\/","refusal":null},"logprobs":{"content":[{"logprob":-1.10E-5}]},"finish_reason":null}]}`
	end := `{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[ {"index":0, "delta":{},"logprobs":null,"finish_reason":"stop"} ]}`
	want := "data: " + first + "\n\ndata: " + end + "\n\ndata: [DONE]\n\n"
	if p := play(t, "data: "+first+"\n\ndata: "+end+"\n\ndata: [DONE]\n\n", 0, testTools); string(p.client) != want {
		t.Errorf("got\n%s, want\n%s", p.client, want)
	}
}

// Several turns are one stream: the hidden ones leave their text and nothing
// else.
func TestChunksBeforeThereIsAnIDAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		chunks, size int
		wait         int // how many do
	}{
		"few":   {3, 100, 3},
		"many":  {40, 100, maxEarly},
		"large": {4, maxEarlySize / 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := Stream{Tools: &testTools}
			var a Answer
			var chunk Chunk
			var stream []byte
			next := func(data string) {
				if !chunk.Parse([]byte(data)) {
					t.Fatalf("no chunk: %s", data)
				}
				a.Observe(&chunk)
				s.Chunk(&chunk, &a)
				stream = append(stream, s.Take()...)
			}
			for i := range c.chunks {
				next(fmt.Sprintf(`{"id":"","choices":[],"filter":"%d %s"}`, i, strings.Repeat("x", c.size)))
				if waits := len(stream) == 0; waits != (i < c.wait) {
					t.Errorf("chunk %d waits: %t", i, waits)
				}
			}
			next(`{"id":"a","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":null}]}`)
			s.Finish(&a, "stop", nil)
			stream = append(stream, s.Take()...)
			checkClientStream(t, stream)
			for i := range c.chunks {
				at := strings.Index(string(stream), fmt.Sprintf(`"filter":"%d x`, i))
				if at < 0 {
					t.Fatalf("chunk %d is gone, or not in its place", i)
				}
				stream = stream[at:]
			}
		})
	}
}

func TestHiddenTurnsLeaveOnlyTheirText(t *testing.T) {
	s := Stream{Tools: &testTools, IncludeUsage: true}
	var out []byte
	hear := func(sse string) *Answer {
		a := &Answer{}
		var c Chunk
		var splitter Splitter
		emit := func(ev *Event) error {
			if a.Event(ev, &c) && !a.Over() {
				s.Chunk(&c, a)
			}
			return nil
		}
		if err := splitter.Feed([]byte(sse), emit); err != nil {
			t.Fatal(err)
		}
		a.Settle(map[string]bool{}, "run_python")
		return a
	}
	a := hear(chunkOf(`{"role":"assistant","content":"a"}`, "null") + calling(piece("0", "x", "run_python", program("1"))) + chunkOf(`{"content":"b"}`, `"tool_calls"`) +
		"data: {\"id\":\"cc-1\",\"choices\":[],\"usage\":{\"total_tokens\":1}}\n\n" + streamEnd)
	s.Hide(a)
	s.Executed([]byte(`{"index":0}`))
	out = append(out, s.Take()...)
	a = hear(strings.ReplaceAll(chunkOf(`{"role":"assistant","content":"c"}`, "null")+chunkOf(`{}`, `"stop"`)+streamEnd, "cc-1", "cc-2"))
	s.Finish(a, "stop", []byte(`{"total_tokens":3}`))
	out = append(out, s.Take()...)

	view := viewOf(t, out)
	if view.text != "abc" || view.id != "cc-1" || view.usage != `{"total_tokens":3}` || len(view.calls) != 0 {
		t.Errorf("the client sees %+v", view)
	}
	if strings.Contains(string(out), "run_python") || strings.Contains(string(out), `"x"`) || !strings.Contains(string(out), `"executed_tools":[{"index":0}]`) {
		t.Errorf("the client got\n%s", out)
	}
}

// A client that did not ask for usage gets none, wherever it stands.
func TestUsageOnlyForThoseWhoAsk(t *testing.T) {
	s := Stream{Tools: &testTools}
	var a Answer
	var c Chunk
	for _, data := range []string{
		`{"id":"x","choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"total_tokens":1}}`,
		`{"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"total_tokens":1}}]}`,
		`{"id":"x","choices":[],"usage":{"total_tokens":1}}`,
	} {
		if !c.Parse([]byte(data)) {
			t.Fatal(data)
		}
		a.Observe(&c)
		s.Chunk(&c, &a)
	}
	s.Finish(&a, "stop", a.Usage)
	if out := string(s.Take()); strings.Contains(out, "usage") {
		t.Errorf("the client got\n%s", out)
	}
}

// What comes late of a call reaches the client, in the form of its tool.
func TestLaterFragmentsOfAClientsCall(t *testing.T) {
	p := play(t, calling(`{"index":0,"id":"a","type":"custom","custom":{"name":"get_weather","input":"te"}}`)+
		calling(`{"index":0,"custom":{"input":"xt"}}`)+calling(`{"index":0,"extra_content":{"google":{"thought_signature":"S"}}}`)+finished, 0, testTools)
	for _, want := range []string{
		`"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"get_weather","input":"te"}}]`,
		`"tool_calls":[{"index":0,"custom":{"input":"xt"}}]`,
		`"tool_calls":[{"index":0,"custom":{"input":""},"extra_content":{"google":{"thought_signature":"S"}}}]`,
	} {
		if !strings.Contains(string(p.client), want) {
			t.Errorf("no %s in\n%s", want, p.client)
		}
	}
	if got := p.answer.Calls()[0].Foreign(); string(got.Echo) != `"text"` {
		t.Errorf("echo %s", got.Echo)
	}
}

// Calls that an upstream gives the same id are told apart by ids of ours, the
// same ones to the client and in the history.
func TestIDsGivenTwice(t *testing.T) {
	for _, turn := range []string{
		calling(piece("0", "a", "run_python", program("1"))) + calling(piece("1", "a", "get_weather", `{"city":`)) + calling(piece("1", "", "", `"Oslo"}`)),
		calling(piece("0", "a", "get_weather", `{}`)) + calling(piece("1", "a", "get_weather", `{}`)) + calling(piece("2", "a", "run_python", program("1"))),
		calling(piece("", "a", "get_weather", `{}`), piece("", "a", "run_python", program("1")), piece("", "a", "get_weather", `{}`)),
	} {
		p := play(t, turn+finished, 0, testTools)
		var ids []string
		for _, call := range p.answer.Calls() {
			if owner, _ := testTools.Owner(call.Name); owner == Client {
				ids = append(ids, call.ID)
			}
		}
		var seenIDs []string
		for _, call := range viewOf(t, p.client).calls {
			seenIDs = append(seenIDs, call.ID)
		}
		if !slices.Equal(ids, seenIDs) || len(p.ran) != 1 {
			t.Errorf("the client sees %q, the history has %q of\n%s", seenIDs, ids, turn)
		}
	}
}
