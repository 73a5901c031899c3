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
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// chunkOf is an event with a chunk that has the given delta and finish_reason.
func chunkOf(delta, finish string) string {
	return `data: {"id":"cc-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":` +
		delta + `,"finish_reason":` + finish + "}]}\n\n"
}

// calling is an event with fragments of calls.
func calling(fragments ...string) string {
	return chunkOf(`{"tool_calls":[`+strings.Join(fragments, ",")+`]}`, "null")
}

const (
	finished  = `data: {"id":"cc-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n"
	streamEnd = "data: [DONE]\n\n"
)

// piece is a fragment of a call, with what is "" left out. args is text.
func piece(index, id, name, args string) string {
	var members, function []string
	if index != "" {
		members = append(members, `"index":`+index)
	}
	if id != "" {
		members = append(members, `"id":`+quote(id), `"type":"function"`)
	}
	if name != "" {
		function = append(function, `"name":`+quote(name))
	}
	function = append(function, `"arguments":`+quote(args))
	members = append(members, `"function":{`+strings.Join(function, ",")+`}`)
	return "{" + strings.Join(members, ",") + "}"
}

func quote(s string) string { return string(appendQuoted(nil, s)) }

// program is the arguments of a call that runs code.
func program(code string) string { return `{"code": ` + quote(code) + `}` }

// testTools are ours and one of the client.
var testTools = Tools{Name: "run_python", Clients: Names{"get_weather": {}}}

// played is what became of one turn in a stream.
type played struct {
	answer *Answer
	client []byte // what the client got
	ran    []string
	errs   []string // what the model was told instead
}

// play reads a stream that comes in pieces of the given size, 0 for at once,
// as the handler does.
func play(t testing.TB, sse string, cut int, tools Tools) played {
	t.Helper()
	var (
		splitter Splitter
		chunk    Chunk
		a        = &Answer{}
		s        = Stream{Tools: &tools, IncludeUsage: true}
		out      bytes.Buffer
	)
	emit := func(ev *Event) error {
		if !a.Over() && a.Event(ev, &chunk) && !a.Over() {
			s.Chunk(&chunk, a)
			out.Write(s.Take())
		}
		return nil
	}
	for rest := []byte(sse); len(rest) > 0; {
		n := len(rest)
		if cut > 0 {
			n = min(cut, n)
		}
		if err := splitter.Feed(bytes.Clone(rest[:n]), emit); err != nil {
			t.Fatalf("Feed: %v", err)
		}
		rest = rest[n:]
	}
	if err := splitter.Close(emit); err != nil {
		t.Fatalf("Close: %v", err)
	}
	p := played{answer: a}
	a.Settle(map[string]bool{}, tools.Name)
	switch {
	case a.Failure != nil:
		s.Fail(a.Failure)
	default:
		finish := a.Finish
		if finish == "" {
			finish = "stop"
		}
		s.Finish(a, finish, a.Usage)
	}
	out.Write(s.Take())
	p.client = out.Bytes()
	p.run(tools)
	return p
}

// run notes what would be run of the answer.
func (p *played) run(tools Tools) {
	if !p.answer.Trusted() || p.answer.Cut() {
		return
	}
	for _, call := range p.answer.Calls() {
		if owner, _ := tools.Owner(call.Name); owner == Gateway {
			if program := call.Program(); program.Problem == "" {
				p.ran = append(p.ran, program.Code)
			} else {
				p.errs = append(p.errs, program.Problem)
			}
		}
	}
}

// echoOf is an answer as it goes back, with what its calls say as programs.
func echoOf(a *Answer, without Dropped) []byte {
	var calls []Echoed
	for _, call := range a.Calls() {
		calls = append(calls, Echoed{Call: call, Arguments: call.Program().Echo})
	}
	return a.Echo(calls, without)
}

// ids returns the ids and names of the calls.
func (p *played) ids() string {
	var list []string
	for _, c := range p.answer.Calls() {
		id := c.ID
		if c.given {
			id = "?"
		}
		list = append(list, id+" "+c.Name)
	}
	return strings.Join(list, ", ")
}

// seenCall is a call as a client puts it together.
type seenCall struct{ ID, Name, Arguments string }

// clientView is what a client makes of a stream, by the rules of the API: it
// fails the test when they are not kept.
type clientView struct {
	id, text, reasoning, finish string
	calls                       []seenCall
	usage                       string
	failure                     string
}

func viewOf(t testing.TB, stream []byte) clientView {
	t.Helper()
	var v clientView
	roles, usages := 0, 0
	events := strings.Split(strings.TrimSuffix(string(stream), "\n\n"), "\n\n")
	for i, event := range events {
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok || strings.ContainsAny(data, "\n\r") {
			t.Fatalf("event %q is not one data line", event)
		}
		if last := i == len(events)-1; last || data == "[DONE]" {
			if !last || data != "[DONE]" {
				t.Fatalf("event %d of %d is %q", i, len(events), data)
			}
			break
		}
		if v.failure != "" {
			t.Fatalf("%q after an error", data)
		}
		var c struct {
			ID      *string
			Error   json.RawMessage
			Usage   json.RawMessage
			Choices []struct {
				Index *int
				Delta *struct {
					Role             string
					Content          any
					ReasoningContent string `json:"reasoning_content"`
					ToolCalls        []struct {
						Index    *int
						ID, Type string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				FinishReason *string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("event %q: %v", data, err)
		}
		if e := string(c.Error); e != "" && e != "null" && e != `""` {
			v.failure = string(c.Error)
			continue
		}
		if c.ID == nil || *c.ID == "" || v.id != "" && v.id != *c.ID {
			t.Fatalf("id of %q is not the one id of the stream %q", data, v.id)
		}
		v.id = *c.ID
		if len(c.Usage) > 0 && string(c.Usage) != "null" {
			usages++
			v.usage = string(c.Usage)
		}
		for _, choice := range c.Choices {
			d := choice.Delta
			if d == nil || choice.Index == nil || *choice.Index != 0 {
				t.Fatalf("choice of %q has no delta or another index", data)
			}
			if d.Role != "" {
				roles++
			}
			text := textOf(d.Content)
			if v.finish != "" && (text != "" || len(d.ToolCalls) > 0) {
				t.Fatalf("%q after the finish_reason", data)
			}
			v.text += text
			v.reasoning += d.ReasoningContent
			for _, call := range d.ToolCalls {
				if call.Index == nil || *call.Index > len(v.calls) {
					t.Fatalf("index of a call in %q after %d calls", data, len(v.calls))
				}
				if *call.Index == len(v.calls) {
					if slices.ContainsFunc(v.calls, func(c seenCall) bool { return c.ID == call.ID }) {
						t.Fatalf("two calls have the id %q", call.ID)
					}
					if call.ID == "" || call.Function.Name == "" || call.Type != "function" {
						t.Fatalf("call in %q begins without id, name or type", data)
					}
					v.calls = append(v.calls, seenCall{ID: call.ID, Name: call.Function.Name})
				}
				v.calls[*call.Index].Arguments += call.Function.Arguments
			}
			if choice.FinishReason != nil {
				if v.finish != "" || *choice.FinishReason == "" {
					t.Fatalf("finish_reason %q after %q", *choice.FinishReason, v.finish)
				}
				v.finish = *choice.FinishReason
			}
		}
	}
	if roles > 1 || usages > 1 || v.finish == "" && v.failure == "" {
		t.Fatalf("%d roles, %d usages, finish %q in\n%s", roles, usages, v.finish, stream)
	}
	return v
}

// textOf returns the text of a content of either form.
func textOf(content any) string {
	switch c := content.(type) {
	case string:
		return c
	case []any:
		var sb strings.Builder
		for _, p := range c {
			if m, ok := p.(map[string]any); ok && m["type"] == "text" {
				fmt.Fprint(&sb, m["text"])
			}
		}
		return sb.String()
	}
	return ""
}

// equalJSON says whether two texts are the same value in JSON.
func equalJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return bytes.Equal(p, q)
}
