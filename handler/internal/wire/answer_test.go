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
	"slices"
	"strings"
	"testing"
)

// How a turn has to end for its calls to be run.
func TestEndOfATurn(t *testing.T) {
	whole := calling(piece("0", "a", "run_python", program("1")))
	half := calling(piece("0", "a", "run_python", `{"code": "1`))
	for _, c := range []struct {
		name, turn   string
		runs         bool
		cut, refused bool // the answer broke off; it is not to be trusted
	}{
		{"finish_reason and [DONE]", whole + finished + streamEnd, true, false, false},
		{"finish_reason alone", whole + finished, true, false, false},
		{"[DONE] alone", whole + streamEnd, true, false, false},
		{"[DONE] in quotes", half + calling(piece("0", "", "", `"}`)) + "data: \"[DONE]\" \n\n", true, false, false},
		{"the end of the body alone", whole, true, false, false},
		{"the end of the body in a call", half, false, true, false},
		{"[DONE] in a call", half + streamEnd, false, false, false},
		{"a program as it is, and no word of its end", calling(piece("0", "a", "run_python", "print(1)")), false, true, false},
		{"a program as it is", calling(piece("0", "a", "run_python", "1+1")) + finished, true, false, false},
		{"a call without arguments of the client", calling(piece("0", "a", "get_weather", "{}")), false, false, false},
		{"stop", whole + chunkOf(`{}`, `"stop"`), true, false, false},
		{"tool_call", whole + chunkOf(`{}`, `"tool_call"`), true, false, false},
		{"function_call", whole + chunkOf(`{}`, `"function_call"`), true, false, false},
		{"other", whole + chunkOf(`{}`, `"other"`), true, false, false},
		{"unknown", whole + chunkOf(`{}`, `"unknown"`), true, false, false},
		{"end_turn", whole + chunkOf(`{}`, `"end_turn"`), true, false, false},
		{"eos_token", whole + chunkOf(`{}`, `"eos_token"`), true, false, false},
		{"length", whole + chunkOf(`{}`, `"length"`), false, false, true},
		{"length, then stop", whole + chunkOf(`{}`, `"length"`) + chunkOf(`{}`, `"stop"`), false, false, true},
		{"MAX_TOKENS", whole + chunkOf(`{}`, `"MAX_TOKENS"`), false, false, true},
		{"content_filter", whole + chunkOf(`{}`, `"content_filter"`), false, false, true},
		{"SAFETY", whole + chunkOf(`{}`, `"SAFETY"`), false, false, true},
		{"MALFORMED_FUNCTION_CALL", whole + chunkOf(`{}`, `"function_call_filter: MALFORMED_FUNCTION_CALL"`), false, false, true},
		{"insufficient_system_resource", whole + chunkOf(`{}`, `"insufficient_system_resource"`), false, false, true},
		{"abort", whole + chunkOf(`{}`, `"abort"`), false, false, true},
		{"error", whole + chunkOf(`{}`, `"error"`), false, false, true},
		{"an error after the call", whole + "data: {\"error\":{\"message\":\"m\"}}\n\n" + streamEnd, false, false, true},
		{"a chunk that is no JSON", whole + "data: {\"choices\":[\n\n" + finished, false, false, true},
		{"nothing", streamEnd, false, true, false},
		{"nothing but a finish_reason", chunkOf(`{}`, `"tool_calls"`) + streamEnd, false, false, false},
		{"reasoning alone", chunkOf(`{"reasoning_content":"<tool_call>run_python</tool_call>"}`, "null") + streamEnd, false, true, false},
		{"text alone", textChunk("<tool_call>{\"name\":\"run_python\"}</tool_call>") + streamEnd, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, c.turn, 0, testTools)
			if a := p.answer; a.Cut() != c.cut || a.Trusted() == c.refused {
				t.Errorf("Cut %t, Trusted %t", a.Cut(), a.Trusted())
			}
			if (len(p.ran) > 0) != c.runs {
				t.Errorf("ran %q", p.ran)
			}
		})
	}
}

func TestNamesCountToWhatIsKept(t *testing.T) {
	var c Chunk
	c.Parse([]byte(`{"choices":[{"delta":{"content":"four","a_long_name":1}}]}`))
	if got, want := c.Kept(), len(`"content":"four"`)+len(`"a_long_name":1`); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

func TestUsageOfATurnIsTheLastOne(t *testing.T) {
	for _, c := range []struct{ turn, want string }{
		{textChunk("a"), ""},
		{`data: {"usage":{"total_tokens":1}}` + "\n\n" + `data: {"usage":{"total_tokens":2}}` + "\n\n", `{"total_tokens":2}`},
		{`data: {"usage":{"total_tokens":1}}` + "\n\n" + `data: {"usage":null}` + "\n\n" + `data: {"usage":{}}` + "\n\n" + `data: {"usage":0}` + "\n\n", `{"total_tokens":1}`},
	} {
		if p := play(t, c.turn, 0, testTools); string(p.answer.Usage) != c.want {
			t.Errorf("usage %s, want %s", p.answer.Usage, c.want)
		}
	}
}

// The message goes back as it came, less what says nothing.
func TestEcho(t *testing.T) {
	call := piece("0", "a", "run_python", program("1"))
	calls := `"tool_calls":[{"id":"a","type":"function","function":{"name":"run_python","arguments":"{\"code\": \"1\"}"}}]}`
	for _, c := range []struct{ name, turn, want string }{
		{"nothing beside the call", calling(call), `{"role":"assistant","content":null,` + calls},
		{"content null", chunkOf(`{"role":"assistant","content":null}`, "null") + calling(call), `{"role":"assistant","content":null,` + calls},
		{"content empty", chunkOf(`{"role":"assistant","content":""}`, "null") + calling(call), `{"role":"assistant","content":"",` + calls},
		{"text around the call", textChunk("a") + calling(call) + textChunk("b"), `{"role":"assistant","content":"ab",` + calls},
		{"another role", chunkOf(`{"role":"model","content":"a"}`, "null") + calling(call), `{"role":"assistant","content":"a",` + calls},
		{"reasoning", chunkOf(`{"reasoning_content":"r"}`, "null") + chunkOf(`{"reasoning_content":"s"}`, "null") + calling(call), `{"role":"assistant","content":null,"reasoning_content":"rs",` + calls},
		{"reasoning under another name", chunkOf(`{"content":"","reasoning":"r"}`, "null") + calling(call), `{"role":"assistant","content":"","reasoning":"r",` + calls},
		{"empty reasoning", chunkOf(`{"reasoning_content":""}`, "null") + calling(call), `{"role":"assistant","content":null,"reasoning_content":"",` + calls},
		{"what only answers have", chunkOf(`{"content":"","refusal":null,"audio":null,"function_call":null,"annotations":[],"tool_calls":null}`, "null") + calling(call), `{"role":"assistant","content":"",` + calls},
		{"what only answers have, but not empty", chunkOf(`{"refusal":"no"}`, "null") + calling(call), `{"role":"assistant","content":null,"refusal":"no",` + calls},
		{
			"a name in a namespace", calling(piece("0", "functions.run_python:3", "functions.run_python", program("1"))),
			`{"role":"assistant","content":null,"tool_calls":[{"id":"functions.run_python:3","type":"function","function":{"name":"functions.run_python","arguments":"{\"code\": \"1\"}"}}]}`,
		},
		{"a name that never came", calling(piece("0", "a", "", program("1"))), `{"role":"assistant","content":null,` + calls},
		{"characters that need no escape", textChunk("<a&b>\u2028") + calling(call), `{"role":"assistant","content":` + quote("<a&b>\u2028") + `,` + calls},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, c.turn+finished, 0, testTools)
			if got := string(echoOf(p.answer, Dropped{})); got != c.want {
				t.Errorf("echo\n%s, want\n%s", got, c.want)
			}
		})
	}
}

// What an upstream put into strings that no JSON allows is mended on the way
// back to it.
func TestEchoIsAlwaysJSON(t *testing.T) {
	p := play(t, chunkOf("{\"content\":\"a\tb\xff\"}", "null")+calling("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"run_python\",\"arguments\":\"{\\\"code\\\":\\\"1\\\"}\"},\"x\":\"\x01\"}")+finished, 0, testTools)
	echo := echoOf(p.answer, Dropped{})
	want := `{"role":"assistant","content":"a\tb` + "\uFFFD" + `","tool_calls":[{"id":"a","type":"function","function":{"name":"run_python","arguments":"{\"code\":\"1\"}"},"x":"\u0001"}]}`
	if string(echo) != want {
		t.Errorf("echo\n%s, want\n%s", echo, want)
	}
}

func TestEchoWithoutWhatWasRefused(t *testing.T) {
	p := play(t, chunkOf(`{"content":"","reasoning_content":"r","x":1}`, "null")+calling(`{"index":0,"id":"a","extra_content":{"y":1},"function":{"name":"run_python","arguments":"{}","z":1}}`)+finished, 0, testTools)
	if got := p.answer.Fields(); !slices.Equal(got, []string{"reasoning_content", "extra_content", "x", "z"}) {
		t.Errorf("fields %q", got)
	}
	echo := func(d Dropped) string {
		s := string(echoOf(p.answer, d))
		if !equalJSON([]byte(s), []byte(s)) {
			t.Errorf("echo %s is no JSON", s)
		}
		return s
	}
	if s := echo(Dropped{Names: []string{"reasoning_content"}}); strings.Contains(s, "reasoning_content") || !strings.Contains(s, `"x":1`) {
		t.Errorf("echo %s", s)
	}
	if s := echo(Dropped{Names: []string{"extra_content", "z"}}); strings.Contains(s, "extra_content") || strings.Contains(s, `"z"`) {
		t.Errorf("echo %s", s)
	}
	if s := echo(Dropped{FlipContent: true}); !strings.Contains(s, `"content":null`) {
		t.Errorf("echo %s", s)
	}
	p = play(t, calling(piece("0", "a", "run_python", "{}"))+finished, 0, testTools)
	if s := echo(Dropped{FlipContent: true}); !strings.Contains(s, `"content":""`) {
		t.Errorf("echo %s", s)
	}
	p = play(t, textChunk("t")+calling(piece("0", "a", "run_python", "{}"))+finished, 0, testTools)
	if s := echo(Dropped{FlipContent: true}); !strings.Contains(s, `"content":"t"`) {
		t.Errorf("echo %s", s)
	}
}
