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

package e2b

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

// A line that is not usual is read twice.
func TestLinesOfARealServerAreUsual(t *testing.T) {
	seen := 0
	for _, rec := range recordings(t) {
		if rec.Status != 200 {
			continue
		}
		for data := range bytes.Lines(rec.body) {
			data = bytes.TrimSpace(data)
			var full, w wireEvent
			if decodeLenient(data, &full) != nil {
				continue // numbers that JSON does not have, a line that was cut
			}
			if _, ok := full.event(); !ok {
				continue // no event
			}
			seen++
			if !w.usual(data) || !reflect.DeepEqual(w, full) {
				t.Errorf("%s: %.200s\nis read as %.300v\nand not as %.300v", rec.name, data, w, full)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d lines", seen)
	}
}

var unusual = []string{
	``, `{`, `{}`, `[]`, `{"type"}`, `{"type":}`, `{"type":"stdout"`, `{"type":"stdout",}`, `{"type":"stdout"}}`, `{"type":"stdout"} {}`,
	`{"type":"stdout","text":"a}`, `{"type":"stdout","text":"a\"}`, `{"type":"stdout","text":"`, `{"type":"stdout","text":"a\x"}`, "{\"text\":\"a\nb\"}",
	`{"type":"stdout","text":7}`, `{"type":"stdout","text":["a"]}`, `{"type":"stdout","other":1}`, `{"type":"stdout","Text":"a"}`, `{"t\u0079pe":"stdout"}`,
	`{"execution_count":01}`, `{"execution_count":1.5}`, `{"execution_count":1e3}`, `{"execution_count":-1}`, `{"execution_count":}`, `{"execution_count":9999999999999999999}`,
	`{"is_main_result":truer}`, `{"is_main_result":"true"}`, `{"is_main_result":1}`, `{"text":nul}`,
	`{"json":[1}`, `{"json":{"a":[1,2}}`, `{"json":[1]]}`, `{"json":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`, `{"json":}`, `{"json":NaN}`, `{"json":"a`, `{"json":[`, `{"json":1 2}`,
}

func TestUnusualLinesAreLeftToEncodingJSON(t *testing.T) {
	for _, data := range unusual {
		if (&wireEvent{}).usual([]byte(data)) {
			t.Errorf("%s is taken for a usual line", data)
		}
	}
}

// What is read in the short way is what encoding/json reads.
func FuzzUsualLine(f *testing.F) {
	for _, data := range unusual {
		f.Add([]byte(data))
	}
	for _, data := range []string{
		`{"type": "stdout", "text": "42\n", "timestamp": "2026-11-30T12:30:21.995259+00:00"}`,
		`{"type":"number_of_executions","execution_count":12}`,
		` { "type" : "result" , "text" : null, "png":"iVBO", "json" : {"a": [1, "]", {}]} , "extra":{}, "chart":null,"data":7 ,"is_main_result" : false } `,
		"{\"text\":\"\xff\",\"html\":\"é\",\"svg\":\"\\u00e9\\ud800\",\"json\":\"\xff\"}",
		`{"json":{"a":1},"json":null,"text":"a","text":null,"text":"b"}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var usual, full wireEvent
		if !usual.usual(data) {
			return
		}
		if err := decodeLenient(data, &full); err != nil || !reflect.DeepEqual(usual, full) {
			t.Errorf("%q is read as %+v, encoding/json reads %+v, %v", data, usual, full, err)
		}
	})
}
