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

// identities are the ways in which upstreams tell fragments of calls apart.
var identities = []struct {
	name  string
	turn  []string
	calls string   // ids and names, ? for an id of ours
	ran   []string // programs
	none  bool     // no program is run
}{
	{name: "index and id, then index", turn: []string{
		calling(piece("0", "a", "run_python", "")), calling(piece("0", "", "", `{"code":`)), calling(piece("0", "", "", `"1"}`)),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "no index", turn: []string{calling(piece("", "a", "run_python", program("1")))}, calls: "a run_python", ran: []string{"1"}},
	{name: "one id, an index for each fragment", turn: []string{
		calling(piece("0", "a", "run_python", `{"code":`)), calling(piece("1", "a", "", `"1`)), calling(piece("2", "a", "", `"}`)),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "one id for two calls, each with its index", turn: []string{
		calling(piece("0", "a", "run_python", `{"code":`)), calling(piece("1", "a", "run_python", `{"code":`)),
		calling(piece("0", "a", "", `"1"}`)), calling(piece("1", "a", "", `"2"}`)),
	}, calls: "a run_python, ? run_python", ran: []string{"1", "2"}},
	{name: "closed snapshots that grow", turn: []string{
		calling(piece("0", "a", "run_python", program("x = 1"))), calling(piece("0", "a", "run_python", program("x = 1; print(x)"))),
	}, calls: "a run_python", ran: []string{"x = 1; print(x)"}},
	{name: "closed snapshots that grow, no index", turn: []string{
		calling(piece("", "a", "run_python", program("x = 1"))), calling(piece("", "a", "run_python", program("x = 1; print(x)"))),
		calling(piece("", "a", "run_python", program("x = 1; print(x); 2"))),
	}, calls: "a run_python", ran: []string{"x = 1; print(x); 2"}},
	{name: "closed snapshots that grow, index alone", turn: []string{
		calling(piece("0", "a", "run_python", program("x = 1"))), calling(piece("0", "", "", program("x = 1; print(x)"))),
	}, calls: "a run_python", ran: []string{"x = 1; print(x)"}},
	{name: "closed snapshots that grow, id alone", turn: []string{
		calling(piece("0", "a", "run_python", program("x = 1"))), calling(piece("0", "a", "", program("x = 1; print(x)"))),
	}, calls: "a run_python", ran: []string{"x = 1; print(x)"}},
	{name: "an object, then a string with more of it", turn: []string{
		calling(`{"index":0,"id":"a","function":{"name":"run_python","arguments":{"code":"1"}}}`), calling(piece("0", "a", "run_python", program("12"))),
	}, calls: "a run_python, ? run_python", ran: []string{"1", "12"}},
	{name: "objects that grow", turn: []string{
		calling(`{"index":0,"id":"a","function":{"name":"run_python","arguments":{"code":"1"}}}`),
		calling(`{"index":0,"id":"a","function":{"name":"run_python","arguments":{"code":"12"}}}`),
	}, calls: "a run_python", ran: []string{"12"}},
	{name: "one id for two programs", turn: []string{
		calling(piece("0", "a", "run_python", program("1"))), calling(piece("0", "a", "run_python", program("2"))),
	}, calls: "a run_python, ? run_python", ran: []string{"1", "2"}},
	{name: "index null", turn: []string{
		calling(piece("null", "a", "run_python", `{"code":`)), calling(piece("null", "", "", `"1"}`)),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "index from 1", turn: []string{
		calling(piece("1", "a", "run_python", `{"code":`)), calling(piece("1", "", "", `"1"}`)),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "index as a string", turn: []string{
		calling(piece(`"0"`, "a", "run_python", `{"code":`)), calling(piece(`"1"`, "b", "run_python", `{"code":`)),
		calling(piece(`"0"`, "", "", `"1"}`)), calling(piece(`"1"`, "", "", `"2"}`)),
	}, calls: "a run_python, b run_python", ran: []string{"1", "2"}},
	{name: "index with a point", turn: []string{
		calling(piece("0.0", "a", "run_python", `{"code":`)), calling(piece("0", "", "", `"1"}`)),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "all indexes 0, whole calls", turn: []string{
		calling(piece("0", "a", "run_python", program("1"))), calling(piece("0", "b", "run_python", program("2"))),
	}, calls: "a run_python, b run_python", ran: []string{"1", "2"}},
	{name: "all indexes 0, calls in fragments", turn: []string{
		calling(piece("0", "a", "run_python", "")), calling(piece("0", "", "", `{"code":"1`)), calling(piece("0", "", "", `"}`)),
		calling(piece("0", "b", "run_python", "")), calling(piece("0", "", "", `{"code":"2`)), calling(piece("0", "", "", `"}`)),
	}, calls: "a run_python, b run_python", ran: []string{"1", "2"}},
	{name: "no indexes, calls in fragments", turn: []string{
		calling(piece("", "a", "run_python", "")), calling(piece("", "", "", `{"code":"1"}`)),
		calling(piece("", "b", "run_python", "")), calling(piece("", "", "", `{"code":"2"}`)),
	}, calls: "a run_python, b run_python", ran: []string{"1", "2"}},
	{name: "two in one delta, no indexes", turn: []string{
		calling(piece("", "a", "run_python", program("1")), piece("", "b", "run_python", program("2"))),
	}, calls: "a run_python, b run_python", ran: []string{"1", "2"}},
	{name: "two in one delta, neither indexes nor ids", turn: []string{
		calling(piece("", "", "run_python", program("1")), piece("", "", "run_python", program("1"))),
	}, calls: "? run_python, ? run_python", ran: []string{"1", "1"}},
	{name: "two in two deltas, neither indexes nor ids", turn: []string{
		calling(piece("", "", "run_python", program("1"))), calling(piece("", "", "run_python", program("2"))),
	}, calls: "? run_python, ? run_python", ran: []string{"1", "2"}},
	{name: "two with objects, neither indexes nor ids", turn: []string{
		calling(`{"index":0,"function":{"name":"run_python","arguments":{"code":"1"}}}`),
		calling(`{"index":0,"function":{"name":"run_python","arguments":{"code":"2"}}}`),
	}, calls: "? run_python, ? run_python", ran: []string{"1", "2"}},
	{name: "no id", turn: []string{
		calling(piece("0", "", "run_python", `{"code":`)), calling(piece("0", "", "", `"1"}`)),
	}, calls: "? run_python", ran: []string{"1"}},
	{name: "name in each fragment, no id", turn: []string{
		calling(piece("0", "", "run_python", `{"code":`)), calling(piece("0", "", "run_python", `"1"}`)),
	}, calls: "? run_python", ran: []string{"1"}},
	{name: "empty ids and names go on", turn: []string{
		calling(piece("0", "a", "run_python", `{"code":`)),
		calling(`{"index":0,"id":"","function":{"name":"","arguments":"\"1\""}}`),
		calling(`{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"}"}}`),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "a number as id", turn: []string{calling(`{"index":0,"id":7,"function":{"name":"run_python","arguments":"{\"code\":\"1\"}"}}`)}, calls: "7 run_python", ran: []string{"1"}},
	{name: "id and name in each fragment", turn: []string{
		calling(piece("0", "a", "run_python", "")), calling(piece("0", "a", "run_python", `{"code":`)), calling(piece("0", "a", "run_python", `"1"}`)),
		calling(piece("0", "a", "run_python", "")),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "an id of its own in each fragment", turn: []string{
		calling(piece("0", "a", "run_python", "")), calling(piece("0", "b", "", `{"code":`)), calling(piece("0", "c", "", `"1"}`)), calling(piece("0", "d", "", "")),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "an id of its own in each fragment, no index", turn: []string{
		calling(piece("", "a", "run_python", "")), calling(piece("", "b", "", `{"code":`)), calling(piece("", "c", "", `"1"}`)),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "fragments of two calls in turns", turn: []string{
		calling(piece("0", "a", "run_python", `{"code":"pri`)), calling(piece("1", "b", "run_python", `{"code":`)),
		calling(piece("0", "", "", `nt(1)`)), calling(piece("1", "", "", `"2"}`)), calling(piece("0", "", "", `"}`)),
	}, calls: "a run_python, b run_python", ran: []string{"print(1)", "2"}},
	{name: "two calls in turns in one delta", turn: []string{
		calling(piece("0", "a", "run_python", ""), piece("1", "b", "run_python", "")),
		calling(piece("1", "", "", program("2")), piece("0", "", "", program("1"))),
	}, calls: "a run_python, b run_python", ran: []string{"1", "2"}},
	{name: "arguments before the name", turn: []string{
		calling(piece("0", "a", "", `{"code":`)), calling(piece("0", "", "", `"1"`)), calling(piece("0", "", "run_python", "}")),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "arguments before id and name", turn: []string{
		calling(piece("0", "", "", `{"code":`)), calling(piece("0", "a", "run_python", `"1"}`)),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "arguments before id and name, no index", turn: []string{
		calling(piece("", "", "", `{"code":`)), calling(piece("", "a", "run_python", `"1"}`)),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "one object instead of an array", turn: []string{
		chunkOf(`{"tool_calls":`+piece("0", "a", "run_python", program("1"))+`}`, "null"),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "null in the middle", turn: []string{
		calling(piece("0", "a", "run_python", `{"code":`)), chunkOf(`{"tool_calls":null}`, "null"), chunkOf(`{"tool_calls":[]}`, "null"),
		calling("null"), calling(piece("0", "", "", `"1"}`)),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "name in pieces", turn: []string{
		calling(piece("0", "a", "run", "")), calling(piece("0", "", "_py", "")), calling(piece("0", "", "thon", program("1"))),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "name in pieces under its id", turn: []string{
		calling(piece("0", "a", "run", "")), calling(piece("0", "a", "_python", program("1"))),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "name that grows", turn: []string{
		calling(piece("0", "a", "run", "")), calling(piece("0", "a", "run_py", "")), calling(piece("0", "a", "run_python", program("1"))),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "one id for two calls with indexes", turn: []string{
		calling(piece("0", "a", "run_python", program("1")), piece("1", "a", "run_python", program("2"))),
	}, calls: "a run_python, ? run_python", ran: []string{"1", "2"}},
	{name: "one id for two calls in two deltas", turn: []string{
		calling(piece("", "a", "run_python", program("1"))), calling(piece("", "a", "run_python", program("2"))),
	}, calls: "a run_python, ? run_python", ran: []string{"1", "2"}},
	{name: "one id for two tools", turn: []string{
		calling(piece("0", "a", "get_weather", `{"city":"Oslo"}`)), calling(piece("0", "a", "run_python", program("1"))),
	}, calls: "a get_weather, ? run_python", ran: []string{"1"}},
	{name: "the same call told twice", turn: []string{
		calling(piece("0", "a", "run_python", program("1"))), calling(piece("0", "a", "run_python", program("1"))),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "two identical calls", turn: []string{
		calling(piece("0", "a", "run_python", program("1"))), calling(piece("1", "b", "run_python", program("1"))),
	}, calls: "a run_python, b run_python", ran: []string{"1", "1"}},
	{name: "nothing after the last call", turn: []string{
		calling(piece("0", "a", "run_python", program("1"))), calling(piece("1", "", "", "")), calling(`{"index":2,"id":"x"}`),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "white space after the last call under another id", turn: []string{
		calling(piece("0", "a", "run_python", program("1"))), calling(piece("0", "z", "", "\n")),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "the name once more after the call, no id", turn: []string{
		calling(piece("0", "", "run_python", program("1"))), calling(piece("0", "", "run_python", "")),
	}, calls: "? run_python", ran: []string{"1"}},
	{name: "one index, no ids, calls in fragments", turn: []string{
		calling(piece("0", "", "run_python", "")), calling(piece("0", "", "", `{"code":`)), calling(piece("0", "", "", `"1"}`)),
		calling(piece("0", "", "run_python", "")), calling(piece("0", "", "", `{"code":`)), calling(piece("0", "", "", `"2"}`)),
	}, calls: "? run_python, ? run_python", ran: []string{"1", "2"}},
	{name: "a call without a function", turn: []string{
		calling(`{"name":"run_python","arguments":{"code":"1"}}`), calling(`{"id":"b","type":"function","name":"run_python","arguments":"{\"code\":\"2\"}"}`),
	}, calls: "? run_python, b run_python", ran: []string{"1", "2"}},
	{name: "nulls in the call", turn: []string{
		calling(`{"index":0,"id":"a","function":{"name":"run_python","arguments":null,"description":null},"extra_content":null,"name":null}`), calling(piece("0", "", "", program("1"))),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "an unopened index goes on with the open call", turn: []string{
		calling(piece("0", "a", "run_python", `{"code":`)), calling(piece("1", "", "", `"1"}`)),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "legacy function_call", turn: []string{
		chunkOf(`{"function_call":{"name":"run_python","arguments":""}}`, "null"), chunkOf(`{"function_call":{"arguments":"{\"code\":"}}`, "null"),
		chunkOf(`{"function_call":{"name":null,"arguments":"\"1\"}"}}`, `"function_call"`),
	}, calls: "? run_python", ran: []string{"1"}},
	{name: "legacy function_call beside tool_calls", turn: []string{
		chunkOf(`{"function_call":{"name":"run_python","arguments":"{\"code\":\"1\"}"},"tool_calls":[`+piece("0", "a", "run_python", program("1"))+`]}`, "null"),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "a message instead of a delta", turn: []string{
		`data: {"id":"cc-1","choices":[{"message":{"role":"assistant","tool_calls":[` + piece("", "a", "run_python", program("1")) + `]},"finish_reason":null}]}` + "\n\n",
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "a message that repeats what the deltas had", turn: []string{
		calling(piece("0", "a", "run_python", program("1"))),
		`data: {"id":"cc-1","choices":[{"message":{"role":"assistant","tool_calls":[` + piece("", "a", "run_python", program("1")) + `]},"delta":{},"finish_reason":null}]}` + "\n\n",
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "a message at the end that repeats the deltas", turn: []string{
		calling(piece("0", "a", "run_python", program("1"))),
		`data: {"id":"cc-1","choices":[{"message":{"role":"assistant","tool_calls":[` + piece("", "b", "run_python", program("1")) + `]},"finish_reason":null}]}` + "\n\n",
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "control tokens around the name", turn: []string{
		calling(piece("0", "a", "<|channel|>run_python<|constrain|>json", program("1"))),
		calling(piece("1", "b", " run_python<|channel|>commentary", program("2"))),
	}, calls: "a run_python, b run_python", ran: []string{"1", "2"}},
	{name: "an escaped name", turn: []string{
		calling(`{"index":0,"id":"a","f\u0075nction":{"n\u0061me":"run\u005fpython","arguments":"{\"c\\u006fde\":\"1\"}"}}`),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "another case of the members", turn: []string{
		calling(`{"Index":0,"ID":"a","Function":{"Name":"run_python","Arguments":"{}"}}`),
	}, calls: "", none: true},
	{name: "another case of the name", turn: []string{calling(piece("0", "a", "Run_Python", program("1")))}, calls: "a Run_Python", none: true},
	{name: "half a surrogate pair in each fragment", turn: []string{
		calling(`{"index":0,"id":"a","function":{"name":"run_python","arguments":"{\"code\":\"'\ud83d"}}`),
		calling(`{"index":0,"function":{"arguments":"\ude00'\"}"}}`),
	}, calls: "a run_python", ran: []string{"'\U0001F600'"}},
	{name: "an escape in two fragments", turn: []string{
		calling(piece("0", "a", "run_python", `{"code":"a`+"\\")), calling(piece("0", "", "", `nb"}`)),
	}, calls: "a run_python", ran: []string{"a\nb"}},
	{name: "an object", turn: []string{
		calling(`{"index":0,"id":"a","function":{"name":"run_python","arguments":{"code":"1"}}}`),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "an object twice", turn: []string{
		calling(`{"index":0,"id":"a","function":{"name":"run_python","arguments":{"code":"1"}}}`),
		calling(`{"index":0,"id":"a","function":{"name":"run_python","arguments":{"code":"1"}}}`),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "an empty object, then the arguments", turn: []string{
		calling(piece("0", "a", "run_python", "{}")), calling(piece("0", "", "", `{"code":`)), calling(piece("0", "", "", `"1"}`)),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "the arguments once more at the end", turn: []string{
		calling(piece("0", "a", "run_python", `{"code":`)), calling(piece("0", "", "", `"1"}`)), calling(piece("0", "", "", program("1"))),
		calling(piece("0", "", "", strings.ReplaceAll(program("1"), " ", ""))),
	}, calls: "a run_python", none: true},
	{name: "the same arguments once more at the end", turn: []string{
		calling(piece("0", "a", "run_python", `{"code": `)), calling(piece("0", "", "", `"1"}`)), calling(piece("0", "", "", program("1"))),
	}, calls: "a run_python", ran: []string{"1"}},
	{name: "arguments that grow", turn: []string{
		calling(piece("0", "a", "run_python", `{"code": "pri`)), calling(piece("0", "a", "run_python", `{"code": "print(1)`)), calling(piece("0", "a", "run_python", `{"code": "print(1)"}`)),
	}, calls: "a run_python", ran: []string{"print(1)"}},
	{name: "two programs glued together", turn: []string{
		calling(piece("0", "a", "run_python", program("1")+program("2"))),
	}, calls: "a run_python", none: true},
	{name: "a whole program and the start of another one", turn: []string{
		calling(piece("0", "a", "run_python", program("1"))), calling(piece("0", "", "", `{"code": "2`)),
	}, calls: "a run_python", none: true},
}

func TestIdentityOfCalls(t *testing.T) {
	for _, c := range identities {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, strings.Join(c.turn, "")+finished+streamEnd, 0, testTools)
			if got := p.ids(); got != c.calls {
				t.Errorf("calls %q, want %q", got, c.calls)
			}
			if c.none != (len(p.ran) == 0) || !slices.Equal(p.ran, c.ran) {
				t.Errorf("ran %q, want %q", p.ran, c.ran)
			}
			for _, call := range p.answer.Calls() {
				if len(call.ID) == 0 || call.given && len(call.ID) != 9 {
					t.Errorf("id %q", call.ID)
				}
			}
			viewOf(t, p.client)
		})
	}
}

// However the pieces of a stream lie, the client gets the same bytes and the
// same programs run.
func TestCutsChangeNothing(t *testing.T) {
	for _, c := range identities {
		t.Run(c.name, func(t *testing.T) {
			sse := strings.Join(c.turn, "") + finished + streamEnd
			whole := play(t, sse, 0, testTools)
			for _, cut := range []int{1, 2, 3, 7, 64, 256} {
				p := play(t, sse, cut, testTools)
				if !slices.Equal(p.ran, whole.ran) || p.ids() != whole.ids() {
					t.Errorf("cut at %d: ran %q, calls %q", cut, p.ran, p.ids())
				}
				if string(p.client) != string(whole.client) {
					t.Errorf("cut at %d: the client got\n%s\nnot\n%s", cut, p.client, whole.client)
				}
			}
		})
	}
}

// Fragments of calls that have opened may come in any order between the calls.
func TestInterleavingsChangeNothing(t *testing.T) {
	a := []string{piece("0", "a", "run_python", `{"code": "`), piece("0", "", "", "1"), piece("0", "", "", `"}`)}
	b := []string{piece("1", "b", "get_weather", `{"city": "`), piece("1", "", "", "Oslo"), piece("1", "", "", `"}`)}
	count := 0
	var weave func(a, b, done []string)
	weave = func(x, y, done []string) {
		if len(x) == 0 && len(y) == 0 {
			count++
			for _, together := range []bool{false, true} {
				var sse string
				if together {
					sse = calling(done...)
				} else {
					for _, f := range done {
						sse += calling(f)
					}
				}
				p := play(t, sse+finished+streamEnd, 0, testTools)
				view := viewOf(t, p.client)
				if !slices.Equal(p.ran, []string{"1"}) || len(view.calls) != 1 || view.calls[0] != (seenCall{"b", "get_weather", `{"city": "Oslo"}`}) {
					t.Fatalf("ran %q, client sees %v of %q", p.ran, view.calls, done)
				}
			}
			return
		}
		if len(x) > 0 {
			weave(x[1:], y, append(slices.Clone(done), x[0]))
		}
		if len(y) > 0 {
			weave(x, y[1:], append(slices.Clone(done), y[0]))
		}
	}
	weave(a, b, nil)
	if count != 20 {
		t.Fatalf("%d interleavings", count)
	}
}

func TestSettleGivesNoIDTwice(t *testing.T) {
	used := map[string]bool{}
	for range 50 {
		var a Answer
		var c Chunk
		if !c.Parse([]byte(`{"choices":[{"delta":{"tool_calls":[` + piece("0", "", "", "x") + "," + piece("1", "", "run_python", "y") + `]}}]}`)) {
			t.Fatal("no chunk")
		}
		a.Observe(&c)
		a.Settle(used, "run_python")
		for _, call := range a.Calls() {
			if call.echoed != "run_python" || !strings.Contains(string(ToolMessage(call, "r")), `"name":"run_python"`) {
				t.Errorf("echoed as %q", call.echoed)
			}
		}
	}
	if len(used) != 100 {
		t.Errorf("%d ids for 100 calls", len(used))
	}
}
