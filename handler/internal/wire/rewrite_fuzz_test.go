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
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"
)

// node is a JSON value as encoding/json reads it, with the order and the
// duplicates of members kept. It is what the scan is compared with.
type node struct {
	kind byte // '{', '[', '"' or 0 for what else there is
	text string
	keys []string
	list []*node
}

// parseNode reads one value. It is nil when the value is not to be compared:
// too deep for a recursive reading, or no JSON.
func parseNode(data []byte) *node {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return nextNode(dec, 200)
}

func nextNode(dec *json.Decoder, depth int) *node {
	tok, err := dec.Token()
	if err != nil || depth == 0 {
		return nil
	}
	switch v := tok.(type) {
	case json.Delim:
		n := &node{kind: byte(v)}
		for dec.More() {
			if v == '{' {
				key, err := dec.Token()
				if err != nil {
					return nil
				}
				n.keys = append(n.keys, key.(string))
			}
			child := nextNode(dec, depth-1)
			if child == nil {
				return nil
			}
			n.list = append(n.list, child)
		}
		if _, err := dec.Token(); err != nil {
			return nil
		}
		return n
	case string:
		return &node{kind: '"', text: v}
	case json.Number:
		return &node{text: v.String()}
	case bool:
		return &node{text: map[bool]string{true: "true", false: "false"}[v]}
	}
	return &node{text: "null"}
}

func (n *node) equal(o *node) bool {
	return n.kind == o.kind && n.text == o.text && slices.Equal(n.keys, o.keys) &&
		slices.EqualFunc(n.list, o.list, (*node).equal)
}

// get returns the last member of a name, nil if there is none.
func (n *node) get(key string) *node {
	if n == nil || n.kind != '{' {
		return nil
	}
	for i := range slices.Backward(n.keys) {
		if n.keys[i] == key {
			return n.list[i]
		}
	}
	return nil
}

func (n *node) count(key string) int {
	return len(slices.DeleteFunc(slices.Clone(n.keys), func(k string) bool { return k != key }))
}

func (n *node) set(key string, v *node) {
	for i := range n.keys {
		if n.keys[i] == key {
			n.list[i] = v
			return
		}
	}
	n.keys, n.list = append(n.keys, key), append(n.list, v)
}

func (n *node) remove(i int) {
	n.keys = slices.Delete(n.keys, i, i+1)
	n.list = slices.Delete(n.list, i, i+1)
}

func (n *node) is(text string) bool { return n != nil && n.kind == '"' && n.text == text }

func (n *node) null() bool { return n == nil || n.kind == 0 && n.text == "null" }

// ours says whether an element of tools is, by any of its types.
func (n *node) ours() bool {
	if n.kind != '{' {
		return false
	}
	for i, k := range n.keys {
		if k == "type" && n.list[i].is(ToolType) {
			return true
		}
	}
	return false
}

// blank replaces each string by an empty one, since the scan does not look
// into them.
func blank(data []byte) []byte {
	var out []byte
	inside, escaped := false, false
	for _, c := range data {
		switch {
		case !inside:
			out = append(out, c)
			inside = c == '"'
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == '"':
			out = append(out, c)
			inside = false
		}
	}
	return out
}

// tooDeep says whether encoding/json refuses a text for its depth only.
func tooDeep(data []byte) bool {
	var syntax *json.SyntaxError
	err := json.Unmarshal(data, new(json.RawMessage))
	return errors.As(err, &syntax) && syntax.Error() == "exceeded max depth"
}

// expected is the rewriting done on the tree.
func expected(n *node, offer bool, choice TurnChoice, appended []*node) (want *node, hasTool, ambiguous bool) {
	for i, k := range slices.Backward(n.keys) {
		if k != "metadata" || n.list[i].kind != '{' {
			continue
		}
		m := n.list[i]
		ids := m.count("session_id")
		ambiguous = ambiguous || ids > 1
		for j, k := range slices.Backward(m.keys) {
			if k == "session_id" {
				m.remove(j)
			}
		}
		if ids > 0 && len(m.keys) == 0 {
			ambiguous = ambiguous || n.count("metadata") > 1
			n.remove(i)
		}
	}
	for i, k := range n.keys {
		if keyOf([]byte(k)) != keyOther && n.count(k) > 1 {
			ambiguous = true
		}
		if k == "tools" && n.list[i].kind == '[' {
			for _, tool := range n.list[i].list {
				hasTool = hasTool || tool.ours()
				ambiguous = ambiguous || tool.kind == '{' && tool.count("type") > 1
			}
		}
	}
	if m := n.get("messages"); m != nil && m.kind == '[' {
		m.list = append(m.list, appended...)
	}
	tools := n.get("tools")
	if ambiguous || !hasTool && (!offer || !tools.null() && tools.kind != '[') {
		return n, hasTool, ambiguous
	}
	expectTool(n, hasTool, choice)
	return n, hasTool, ambiguous
}

// expectTool puts the function tool in and changes tool_choice.
func expectTool(n *node, hasTool bool, choice TurnChoice) {
	const base = "run_python"
	tools := n.get("tools")
	var names []string
	if tools.null() {
		tools = &node{kind: '['}
		n.set("tools", tools)
	}
	for _, t := range tools.list {
		for _, holder := range []*node{t.get("function"), t.get("custom"), t} {
			if name := holder.get("name"); !t.ours() && name != nil && name.kind == '"' {
				names = append(names, name.text)
			}
		}
	}
	if functions := n.get("functions"); functions != nil && functions.kind == '[' {
		for _, f := range functions.list {
			if name := f.get("name"); name != nil && name.kind == '"' {
				names = append(names, name.text)
			}
		}
	}
	name := base
	if slices.Contains(names, base) {
		name = base + "_2" // the corpus has no client with both
	}
	tool := parseNode(functionTool(name))
	if !hasTool {
		tools.list = append(tools.list, tool)
	}
	var list []*node
	for _, t := range tools.list {
		switch {
		case !t.ours():
			list = append(list, t)
		case !slices.Contains(list, tool):
			list = append(list, tool)
		}
	}
	tools.list = list
	if c := n.get("tool_choice"); choice == NoTools {
		n.set("tool_choice", &node{kind: '"', text: "none"})
	} else if !c.null() {
		n.set("tool_choice", expectChoice(c, names, name, choice, len(list) == 1 && len(names) == 0))
	}
}

// expectChoice returns the tool_choice. alone says that there is no other tool.
func expectChoice(c *node, names []string, name string, choice TurnChoice, alone bool) *node {
	auto := &node{kind: '"', text: "auto"}
	named := func(c *node) bool {
		called := c.get("function").get("name")
		if called == nil || called.kind != '"' {
			called = c.get("name")
		}
		return c.get("type").is(ToolType) || c.get("type").is("function") &&
			(called.is("run_python") || called.is(ToolType)) && !slices.Contains(names, called.text)
	}
	form := parseNode(functionChoice(name))
	switch {
	case c.is("auto"), c.is("none"):
		return c
	case named(c) && choice == AsAsked:
		return form
	case named(c):
		return auto
	case c.get("type").is("allowed_tools"):
		list := c.get("allowed_tools")
		if list == nil || list.kind != '{' {
			list = c
		}
		if t := list.get("tools"); t != nil && t.kind == '[' {
			for i := range t.list {
				if named(t.list[i]) {
					t.list[i] = form
				} else {
					alone = false
				}
			}
			if alone && choice == Unforced {
				return auto
			}
		}
		if list.get("mode").is("required") && choice == Unforced {
			list.set("mode", auto)
		}
		return c
	case choice == AsAsked:
		return c
	}
	return auto
}

func FuzzRewrite(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":"6*7?"}],"tools":[{"type":"code_interpreter"}],"tool_choice":"required"}`,
		` { "messages" : [ ] , "tools" : [ {"type":"function","function":{"name":"run_python"}} , {"type":"code_interpreter"} , {"type":"code_interpreter"} ] } `,
		`{"metadata":{"session_id":"s"},"tools":[{"type":"code\u005finterpreter"}],"tool_choice":{"type":"code_interpreter"}}`,
		`{"messages":[1],"metadata":{"a":1,"session_id":"s","b":2},"tools":null,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"code_interpreter"},{"type":"function","function":{"name":"f"}}]}}}`,
		`{"metadata":{"session_id":"s","session_id":"t"},"tools":[],"tools":[{"type":"code_interpreter","type":"x"}],"n":1.10,"x":[1E+2,12345678901234567890123]}`,
		`{"metadata":{"session_id":"s"}}`, `{}`, `{"stream":true,"messages":[],"tool_choice":null}`, `{"a":"\\\"\u00e9\/<a&b>"}`, `[`, `{"a":[}`,
	} {
		for choice := range byte(3) {
			f.Add([]byte(body), choice*7, choice)
		}
	}
	f.Fuzz(checkRewrite)
}

// checkRewrite compares scan and rewriting of a body, in blocks of size+1
// bytes, with encoding/json. mode chooses the options.
func checkRewrite(t *testing.T, data []byte, size, mode byte) {
	body := split(data, int(size)+1)
	r, ok := Scan(body)
	first := bytes.TrimLeft(data, " \t\r\n")
	blanked := blank(data)
	valid := json.Valid(blanked) && len(first) > 0 && first[0] == '{'
	if ok != valid && !tooDeep(blanked) {
		t.Fatalf("Scan of %q says %v, its structure is %v", data, ok, valid)
	}
	if !ok {
		return
	}
	offer := mode&4 != 0
	turn := Turn{Choice: TurnChoice(mode & 3 % 3)}
	e := r.Rewrite(RewriteOptions{Name: "run_python", Offer: offer})
	if got := e.Turn(Turn{}).Bytes(); e.Name == "" && !e.Changed() && !bytes.Equal(got, data) {
		t.Fatalf("%q became %q without a change", data, got)
	}
	if !json.Valid(data) || !utf8.Valid(data) || parseNode(data) == nil {
		return
	}
	raw := []byte(`{"role":"tool"}`)
	turn.Appended = [][]byte{raw, raw}
	want, hasTool, ambiguous := expected(parseNode(data), offer, turn.Choice, []*node{parseNode(raw), parseNode(raw)})
	if r.HasTool != hasTool || (r.Duplicate != "") != ambiguous {
		t.Fatalf("Scan of %q: HasTool %v, Duplicate %q, want %v, %v", data, r.HasTool, r.Duplicate, hasTool, ambiguous)
	}
	s := e.Turn(turn)
	out, err := io.ReadAll(s.NewReader())
	if err != nil || int64(len(out)) != s.Len() {
		t.Fatalf("read %d of %d bytes: %v", len(out), s.Len(), err)
	}
	if got := parseNode(out); !json.Valid(out) || got == nil || !got.equal(want) {
		t.Fatalf("%q became\n%q", data, out)
	}
}

// writer writes random requests of the members that matter here.
type writer struct {
	*rand.Rand
	out []byte
}

func (w *writer) pick(list ...string) string { return list[w.IntN(len(list))] }

func (w *writer) space() { w.out = append(w.out, w.pick("", "", "", " ", "\n\t", "\r\n  ")...) }

// str writes a string, now and then with an escape in it.
func (w *writer) str(s string) {
	w.out = append(w.out, '"')
	for _, c := range []byte(s) {
		if w.IntN(30) == 0 {
			w.out = fmt.Appendf(w.out, `\u%04x`, c)
		} else {
			w.out = append(w.out, c)
		}
	}
	w.out = append(w.out, '"')
}

// list writes up to n items between brackets.
func (w *writer) list(brackets string, n int, item func()) {
	w.out = append(w.out, brackets[0])
	for i := range w.IntN(n + 1) {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.space()
		item()
		w.space()
	}
	w.space()
	w.out = append(w.out, brackets[1])
}

// object writes up to n members with names of the list.
func (w *writer) object(n int, names []string) {
	w.list("{}", n, func() {
		name := names[w.IntN(len(names))]
		w.str(name)
		w.space()
		w.out = append(w.out, ':')
		w.space()
		w.value(name)
	})
}

// value writes a value as the name of its member suggests, or any other.
func (w *writer) value(name string) {
	if w.IntN(12) == 0 {
		name = ""
	}
	switch name {
	case "metadata":
		w.object(3, []string{"session_id", "session_id", "team"})
	case "messages":
		w.list("[]", 3, func() { w.object(3, []string{"role", "content", "tools"}) })
	case "tools":
		w.list("[]", 4, func() { w.object(3, []string{"type", "type", "function", "custom", "name", "container", "x", "y"}) })
	case "function", "custom":
		w.object(2, []string{"name", "description"})
	case "tool_choice":
		if w.IntN(3) == 0 {
			w.str(w.pick("auto", "none", "required"))
			return
		}
		w.object(3, []string{"type", "function", "name", "allowed_tools", "mode", "tools"})
	case "allowed_tools":
		w.object(3, []string{"mode", "tools"})
	case "type":
		w.str(w.pick("function", ToolType, ToolType, "allowed_tools", "custom"))
	case "name":
		w.str(w.pick("run_python", ToolType, "f"))
	case "mode":
		w.str(w.pick("required", "auto"))
	default:
		w.out = append(w.out, w.pick("null", "true", "false", "0", "-1.50E+3", "12345678901234567890123", `"a\"b\\"`, `"\u00e9\/<&>"`, "[]", "{}", `[{"tools":[1,"]"]}]`)...)
	}
}

func TestRewriteOfRandomRequestsAgreesWithAFullParser(t *testing.T) {
	w := writer{Rand: rand.New(rand.NewPCG(5, 6))}
	tools := 0
	for range 3_000 {
		w.out = w.out[:0]
		w.space()
		w.object(6, []string{"metadata", "metadata", "messages", "tools", "tools", "tool_choice", "stream", "n", "model", "seed", "user"})
		w.space()
		data := slices.Clone(w.out)
		if !json.Valid(data) {
			t.Fatalf("%s is no JSON, the test is wrong", data)
		}
		checkRewrite(t, data, byte(w.Uint32()), byte(w.Uint32()))
		if r := follow(t, string(data)); r.HasTool && r.Duplicate == "" {
			tools++
		}
	}
	if tools < 75 {
		t.Errorf("only %d requests had the tool, the test is weak", tools)
	}
}
