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
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// wholeAnswer reads an answer in one piece.
func wholeAnswer(t testing.TB, body string) (*Chunk, *Answer) {
	t.Helper()
	c, a := &Chunk{}, &Answer{}
	if !c.Parse([]byte(body)) || !c.HasChoice() {
		t.Fatalf("no completion: %s", body)
	}
	a.Observe(c)
	a.Done = true
	a.Settle(map[string]bool{}, testTools.Name)
	return c, a
}

// completionOf is an answer in one piece with the given message.
func completionOf(message, finish string) string {
	return `{"id":"cc-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":` + message +
		`,"logprobs":null,"finish_reason":` + finish + `}],"usage":{"total_tokens":1},"x":1.10}`
}

func clientCalls(a *Answer) []*Call {
	return slices.DeleteFunc(slices.Clone(a.Calls()), func(c *Call) bool {
		owner, _ := testTools.Owner(c.Name)
		return owner != Client
	})
}

func TestAnswersThatNeedNoChangeAreGivenAsTheyCame(t *testing.T) {
	for _, message := range []string{
		`{"role":"assistant","content":"<a&b> \u00e9\/", "refusal":null,"annotations":[]}`,
		`{"role":"assistant","content":"a","tool_calls":[]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"get_weather","arguments":"{\"city\" :1.0}"}}]}`,
		`{"content":[{"type":"text","text":"a"}],"role":"assistant"}`,
	} {
		body := completionOf(message, `"stop"`)
		c, a := wholeAnswer(t, body)
		n := Completion{Tools: &testTools}
		got := n.Final(c, a, Outcome{Finish: "stop", Usage: a.Usage, Calls: clientCalls(a)})
		if string(got) != body {
			t.Errorf("got\n%s, want\n%s", got, body)
		}
	}
}

// A client gets its calls in the form that it can use.
func TestCallsAreMendedForTheClient(t *testing.T) {
	for _, c := range []struct{ name, call, want string }{
		{"an object", `{"id":"a","type":"function","function":{"name":"get_weather","arguments":{"city":"Oslo"}}}`, `{"id":"a","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}}`},
		{"a namespace", `{"id":"a","type":"function","function":{"name":"functions.get_weather","arguments":"{}"}}`, `{"id":"a","type":"function","function":{"name":"get_weather","arguments":"{}"}}`},
		{"a control token", `{"id":"a","type":"function","function":{"name":"get_weather<|channel|>","arguments":"{}"}}`, `{"id":"a","type":"function","function":{"name":"get_weather","arguments":"{}"}}`},
		{"beside ours", `{"id":"x","type":"function","function":{"name":"run_python","arguments":"{}"}},{"id":"a","index":1,"type":"function","function":{"name":"get_weather","arguments":"{}"}}`, `{"id":"a","type":"function","function":{"name":"get_weather","arguments":"{}"}}`},
		{"a custom tool", `{"id":"x","function":{"name":"python","arguments":"{}"}},{"id":"a","type":"custom","custom":{"name":"get_weather","input":"text"}}`, `{"id":"a","type":"custom","custom":{"name":"get_weather","input":"text"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			chunk, a := wholeAnswer(t, completionOf(`{"role":"assistant","content":null,"tool_calls":[`+c.call+`]}`, `"tool_calls"`))
			n := Completion{Tools: &testTools}
			got := n.Final(chunk, a, Outcome{Finish: "tool_calls", Usage: a.Usage, Calls: clientCalls(a)})
			want := completionOf(`{"role":"assistant","content":null,"tool_calls":[`+c.want+`]}`, `"tool_calls"`)
			if !equalJSON(got, []byte(want)) {
				t.Errorf("got\n%s, want\n%s", got, want)
			}
		})
	}
	chunk, a := wholeAnswer(t, completionOf(`{"tool_calls":[{"function":{"name":"get_weather","arguments":"{}"}}]}`, `"tool_calls"`))
	n := Completion{Tools: &testTools}
	if got := n.Final(chunk, a, Outcome{Finish: "tool_calls", Calls: clientCalls(a)}); !strings.Contains(string(got), `"id":"`+a.Calls()[0].ID+`"`) {
		t.Errorf("no id in %s", got)
	}
}

func TestCompletionAfterHiddenTurns(t *testing.T) {
	n := Completion{Tools: &testTools}
	_, hidden := wholeAnswer(t, completionOf(`{"role":"assistant","content":"a","reasoning_content":"r","x":"hidden","tool_calls":[`+piece("", "a", "run_python", program("1"))+`]}`, `"tool_calls"`))
	n.Hide(hidden)
	_, hidden = wholeAnswer(t, completionOf(`{"role":"assistant","content":[{"type":"text","text":"b\n"}],"tool_calls":[`+piece("", "a", "run_python", program("1"))+`]}`, `"tool_calls"`))
	n.Hide(hidden)
	outcome := Outcome{Finish: "stop", Usage: []byte(`{"total_tokens":3}`), Executed: []byte(`[{"index":0}]`)}
	for _, c := range []struct{ last, want string }{
		{`{"role":"assistant","content":"c","refusal":null}`, `{"role":"assistant","content":"ab\nc","refusal":null,"reasoning_content":"r","executed_tools":[{"index":0}]}`},
		{`{"role":"assistant","content":null}`, `{"role":"assistant","content":"ab\n","reasoning_content":"r","executed_tools":[{"index":0}]}`},
		{`{"role":"assistant"}`, `{"role":"assistant","content":"ab\n","reasoning_content":"r","executed_tools":[{"index":0}]}`},
		{`{"content":[{"type":"text","text":"c"}]}`, `{"role":"assistant","content":[{"type":"text","text":"ab\n"},{"type":"text","text":"c"}],"reasoning_content":"r","executed_tools":[{"index":0}]}`},
	} {
		chunk, a := wholeAnswer(t, completionOf(c.last, `"stop"`))
		got := n.Final(chunk, a, outcome)
		want := strings.Replace(completionOf(c.want, `"stop"`), `"total_tokens":1`, `"total_tokens":3`, 1)
		// Texts of one kind may flow together.
		got2 := strings.ReplaceAll(string(got), `{"type":"text","text":"ab\nc"}`, `{"type":"text","text":"ab\n"},{"type":"text","text":"c"}`)
		if !equalJSON([]byte(got2), []byte(want)) {
			t.Errorf("got\n%s, want\n%s", got, want)
		}
	}
}

// The same answer, streamed or in one piece, is the same to the client,
// whichever of the two the client asked for.
func TestStreamAndJSONGiveTheSame(t *testing.T) {
	for _, c := range []struct{ name, message, finish string }{
		{"text", `{"role":"assistant","content":"a\u00e9<b>"}`, "stop"},
		{"reasoning", `{"role":"assistant","reasoning_content":"r","content":"a"}`, "stop"},
		{"calls of the client", `{"role":"assistant","content":"a","tool_calls":[` + piece("0", "x", "get_weather", `{"city":"Oslo"}`) + `,` + piece("1", "y", "get_weather", `{}`) + `]}`, "tool_calls"},
		{"calls of both", `{"role":"assistant","content":"a","tool_calls":[` + piece("0", "x", "run_python", program("1")) + `,` + piece("1", "y", "functions.get_weather", `{}`) + `]}`, "tool_calls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := strings.Replace(strings.Replace(completionOf(c.message, quote(c.finish)), "chat.completion", "chat.completion.chunk", 1), `"message"`, `"delta"`, 1)
			streamed := play(t, "data: "+data+"\n\n"+streamEnd, 0, testTools)
			chunk, whole := wholeAnswer(t, completionOf(c.message, quote(c.finish)))
			outcome := Outcome{Finish: c.finish, Usage: whole.Usage, Calls: clientCalls(whole)}

			views := map[string]clientView{"stream of a stream": viewOf(t, streamed.client)}
			s := Stream{Tools: &testTools, IncludeUsage: true}
			s.Chunk(chunk, whole)
			s.Finish(whole, c.finish, whole.Usage)
			views["stream of JSON"] = viewOf(t, s.Take())
			views["JSON of JSON"] = viewOfCompletion(t, (&Completion{Tools: &testTools}).Final(chunk, whole, outcome))
			outcome.Calls = clientCalls(streamed.answer)
			views["JSON of a stream"] = viewOfCompletion(t, (&Completion{Tools: &testTools}).Final(nil, streamed.answer, outcome))
			want := views["stream of a stream"]
			for name, got := range views {
				if got.id != want.id || got.text != want.text || got.reasoning != want.reasoning || got.finish != want.finish || got.usage != want.usage || !slices.Equal(got.calls, want.calls) {
					t.Errorf("%s: %+v, not %+v", name, got, want)
				}
			}
		})
	}
}

// viewOfCompletion is what a client makes of an answer in one piece.
func viewOfCompletion(t testing.TB, body []byte) clientView {
	t.Helper()
	var c struct {
		ID, Object string
		Usage      json.RawMessage
		Choices    []struct {
			Message struct {
				Role             string
				Content          any
				ReasoningContent string `json:"reasoning_content"`
				ToolCalls        []struct {
					ID, Type string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal(body, &c); err != nil || len(c.Choices) != 1 || c.Object != "chat.completion" || c.Choices[0].Message.Role != "assistant" {
		t.Fatalf("%v: no completion: %s", err, body)
	}
	m := c.Choices[0].Message
	v := clientView{id: c.ID, text: textOf(m.Content), reasoning: m.ReasoningContent, finish: c.Choices[0].FinishReason, usage: string(c.Usage)}
	for _, call := range m.ToolCalls {
		v.calls = append(v.calls, seenCall{call.ID, call.Function.Name, call.Function.Arguments})
	}
	return v
}

func TestContentOfTooManyPartsStandsAlone(t *testing.T) {
	var n Completion
	first, last := Answer{}, Answer{}
	var c Chunk
	for _, turn := range []struct {
		answer  *Answer
		content string
	}{{&first, `"hidden"`}, {&last, `[` + numbered(maxParts, `{"index":%d}`) + `]`}} {
		c.Parse([]byte(`{"choices":[{"index":0,"message":{"content":` + turn.content + `}}]}`))
		turn.answer.Observe(&c)
	}
	n.Hide(&first)
	content := last.message.get("content")
	if got := string(n.prefixed(content)); got != string(content.value) {
		t.Errorf("content of %d bytes, want the %d that came", len(got), len(content.value))
	}
}
