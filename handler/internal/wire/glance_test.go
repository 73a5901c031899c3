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
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire/bodies"
)

// mayConcern looks at a request of which the last byte has not come.
func mayConcern(t testing.TB, data string) bool {
	t.Helper()
	b, err := ReadBody(strings.NewReader(data), int64(len(data)), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	return b.MayConcern()
}

// spellings returns a name as it is and with each of its bytes escaped.
func spellings(name string) []string {
	list := []string{name}
	for i := range name {
		for _, form := range []string{`\u%04x`, `\u%04X`} {
			list = append(list, name[:i]+fmt.Sprintf(form, name[i])+name[i+1:])
		}
	}
	return list
}

func TestGlanceFindsEachSpelling(t *testing.T) {
	for _, name := range spellings(ToolType) {
		if !mayConcern(t, `{"tools":[{"type":"`+name+`"}]}`) {
			t.Errorf("the tool is not seen as %s", name)
		}
	}
	for _, name := range spellings("session_id") {
		if !mayConcern(t, `{"metadata":{"`+name+`":""}}`) {
			t.Errorf("the session id is not seen as %s", name)
		}
	}
}

// texts that the glance takes in its different ways.
var fillings = map[string]string{
	"plain":                   "the model answers ",
	"quotes":                  `a \"quoted\" word\n`,
	"underscores":             "a_name_of_a_column ",
	"zeros":                   `0.1\t0.0\n`,
	"zeros and underscores":   `row_01 = col_01\n`,
	"escapes of other things": `\u2013\u4e2d\ud83d\ude0a`,
	"marks of other things":   `\u0040_id_in_100`,
	"bytes of UTF-8":          "é中😀\xdc\xf5\xdf\xe9",
}

func TestGlanceFindsANameWhereverItStands(t *testing.T) {
	names := []string{`"code_interpreter"`, `"session_id"`, `"code\u005finterpreter"`, `"s\u0065ssion_id"`, `"\u0063ode_interpreter"`, `"session_i\u0064"`}
	for kind, filling := range fillings {
		text := strings.Repeat(filling, 9*glanceWindow/len(filling)/4)
		places := []int{}
		for d := range 2 * stride {
			places = append(places, d, glanceWindow-stride+d, len(text)-glanceWindow-stride+d)
		}
		for _, place := range places {
			for _, name := range names {
				for _, data := range []string{text[:place] + name + text[place:], text[:place] + name} {
					if !mayConcern(t, data) {
						t.Fatalf("%s: %s is not seen at %d of %d", kind, name, place, len(data))
					}
				}
			}
		}
	}
}

func TestGlanceSparesRequestsWithoutTheNames(t *testing.T) {
	for _, m := range bodies.Measured {
		if !mayConcern(t, string(m.WithTool())) || !mayConcern(t, string(m.Plain())) {
			t.Errorf("%s: the tool or the session id is not seen", m.Name)
		}
		if mayConcern(t, string(withoutSession(m.Plain()))) {
			t.Errorf("%s: something is seen", m.Name)
		}
	}
	for kind, filling := range fillings {
		if kind != "marks of other things" && mayConcern(t, `{"a":"`+strings.Repeat(filling, 5*glanceWindow/len(filling))+`"}`) {
			t.Errorf("%s: something is seen", kind)
		}
	}
	if mayConcern(t, `{"a":"`+strings.Repeat("-", glanceWindow)+"code_interpreter"+strings.Repeat("-", 2*glanceWindow)+`"}`) {
		t.Error("a name is seen where there is no quote near it")
	}
	for _, text := range []string{
		`code_interpreter`, `{"type":"code_interprete"}`, `{"type":"ode_interpreter"}`, `{"type":"code__interpreter"}`, `{"a":"_interpreter code session _id"}`,
		`{"a":"\u0049\u0080\u0100\u5000"}`, `{"a":"\u"}`, `{"a":"\u00"}`, `{"a":"\\`, `__`, `_i`, `\u`, `00`,
	} {
		if mayConcern(t, text) {
			t.Errorf("something is seen in %s", text)
		}
	}
}

// A text full of what needs a closer look is scanned, which is faster there.
func TestGlanceGivesUpSoon(t *testing.T) {
	for _, filling := range []string{"_i", `\"user_id\":1,`, `00`, `1000 `, fillings["marks of other things"]} {
		some := `"` + strings.Repeat(filling, glanceWindow/2/len(filling))
		g := glance{text: []byte(strings.Repeat(some, 4) + `\`)}
		if !g.concerns() || g.misses > 2*fewMisses {
			t.Errorf("%s: given up after %d misses", filling, g.misses)
		}
	}
}

func TestGlanceAllocatesNothing(t *testing.T) {
	for _, m := range bodies.Measured {
		body := NewBody(withoutSession(m.Plain()))
		if n := testing.AllocsPerRun(10, func() { body.MayConcern() }); n > 0 {
			t.Errorf("%s: the glance allocates %v times", m.Name, n)
		}
	}
}

// What the glance is compared with: a name or an escape that may be a part of
// one, which there has to be when it sees something, and a whole string with
// such, in which it has to see something.
var (
	marked = regexp.MustCompile(`code_interpreter|session_id|\\u00[567]`)
	inName = regexp.MustCompile(`"(?:code_interpreter|session_id|` + letters + `\\u00[567].` + letters + `)(?:"|$)`)
)

const letters = `(?:[a-z_]|\\u00[567].){0,15}`

func FuzzGlance(f *testing.F) {
	for kind, filling := range fillings {
		f.Add([]byte(filling), uint16(300), []byte(kind), uint16(2))
	}
	f.Add([]byte(`{"tools":[{"type":"x"}],`), uint16(1), []byte(`"metadata":{"session\u005fid":"s"}}`), uint16(1))
	f.Add([]byte(`{"tools":[`), uint16(1), []byte(`{"type":"code_interpreter"}]}`), uint16(1))
	f.Fuzz(func(t *testing.T, first []byte, times uint16, second []byte, again uint16) {
		if n := len(first)*int(times) + len(second)*int(again); n < 2 || n > 64<<10 {
			return
		}
		data := append(bytes.Repeat(first, int(times)), bytes.Repeat(second, int(again))...)
		read := data[:len(data)-1]
		body := NewBody(read)
		if body.MayConcern() {
			g := glance{text: read}
			g.concerns()
			if g.misses <= fewMisses && !marked.Match(read) {
				t.Errorf("something is seen in %.200q", data)
			}
			return
		}
		if inName.Match(read) {
			t.Errorf("nothing is seen in %.200q", data)
		}
		if r, ok := Scan(NewBody(data)); ok && (r.HasTool || r.session.first != 0) {
			t.Errorf("what the scan finds in %.200q is not seen", data)
		}
	})
}
