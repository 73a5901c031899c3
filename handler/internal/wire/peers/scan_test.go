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

// Package peers compares the scan of a request to what others make of the same
// bytes. It is a module of its own, so that nobody else gets the others.
package peers

import (
	"encoding/json"
	"strings"
	"testing"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire/bodies"
)

// found is what a request is read for: whether an element of tools is the code
// interpreter, and metadata.session_id.
type found struct {
	tool    bool
	session string
}

// ways is how it is found. Those of gjson look for nothing else: whether the
// body is JSON, or has a member twice, they do not say.
var ways = []struct {
	name string
	find func(data []byte) found
}{
	{"wire", byWire},
	{"gjson", byGJSON},
	{"gjsonForEach", byGJSONForEach},
	{"encodingjson", byEncodingJSON},
}

func byWire(data []byte) found {
	r, ok := wire.Scan(wire.NewBody(data))
	if !ok {
		return found{}
	}
	session, _ := r.SessionID()
	return found{r.HasTool, session}
}

// byGJSON asks for two paths, for each of which the body is read.
func byGJSON(data []byte) found {
	r := gjson.GetManyBytes(data, `tools.#(type=="`+wire.ToolType+`")`, "metadata.session_id")
	return found{r[0].Exists(), r[1].String()}
}

// byGJSONForEach reads the body once. It does without the copy of it that
// gjson.ParseBytes would make.
func byGJSONForEach(data []byte) (f found) {
	gjson.Parse(unsafe.String(unsafe.SliceData(data), len(data))).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "tools":
			value.ForEach(func(_, tool gjson.Result) bool {
				f.tool = tool.Get("type").Str == wire.ToolType
				return !f.tool
			})
		case "metadata":
			f.session = value.Get("session_id").Str
		}
		return true
	})
	f.session = strings.Clone(f.session)
	return f
}

// byEncodingJSON decodes what is asked for and nothing else.
func byEncodingJSON(data []byte) found {
	var v struct {
		Tools []struct {
			Type string `json:"type"`
		} `json:"tools"`
		Metadata struct {
			SessionID string `json:"session_id"`
		} `json:"metadata"`
	}
	if json.Unmarshal(data, &v) != nil {
		return found{}
	}
	f := found{session: v.Metadata.SessionID}
	for _, t := range v.Tools {
		f.tool = f.tool || t.Type == wire.ToolType
	}
	return f
}

func TestAllFindTheSame(t *testing.T) {
	type request struct {
		name string
		data []byte
		want found
	}
	requests := []request{
		{"first tool", []byte(`{"tools":[{"type":"code_interpreter"},{"type":"function"}],"metadata":{"session_id":"a"},"messages":[]}`), found{true, "a"}},
		{"escapes", []byte(`{"metadata":{"session_id":"a\"\u0062"},"tools":[{"type":"code\u005finterpreter"}]}`), found{true, `a"b`}},
		{"elsewhere", []byte(`{"messages":[{"content":"\"tools\":[{\"type\":\"code_interpreter\"}]","metadata":{"session_id":"a"}}],"session_id":"b",` +
			`"tools":[{"type":"function","function":{"tools":[{"type":"code_interpreter"}],"type":"code_interpreter"}}]}`), found{}},
	}
	for _, m := range bodies.Measured {
		requests = append(requests,
			request{m.Name, m.Plain(), found{false, bodies.SessionID}},
			request{m.Name + " with the tool", m.WithTool(), found{true, bodies.SessionID}})
	}
	for _, r := range requests {
		for _, w := range ways {
			if got := w.find(r.data); got != r.want {
				t.Errorf("%s: %s finds %+v, want %+v", r.name, w.name, got, r.want)
			}
		}
	}
}

func BenchmarkScan(b *testing.B) {
	for _, w := range ways {
		for _, m := range bodies.Measured {
			data := m.Plain()
			b.Run("by="+w.name+"/body="+m.Name, func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					if f := w.find(data); f.tool || f.session != bodies.SessionID {
						b.Fatalf("it finds %+v", f)
					}
				}
			})
		}
	}
}
