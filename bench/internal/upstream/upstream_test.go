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

package upstream

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

func post(t *testing.T, s *Server, body string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
	maps.Copy(r.Header, header)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestScriptSurvivesTheModelField(t *testing.T) {
	want := Script{Turns: 9, Chunks: 20, Pause: time.Millisecond, Code: 600 * time.Millisecond, Early: true}
	for _, stream := range []bool{true, false} {
		body := `{"model":"` + want.Model() + `","stream":` + strconv.FormatBool(stream) + `,"messages":[]}`
		got, gotStream, err := parseScript([]byte(body))
		if err != nil || got != want || gotStream != stream {
			t.Errorf("parseScript(%s) = %+v, %v, %v", body, got, gotStream, err)
		}
	}
	for _, body := range []string{`{}`, `{"model":"gpt"}`, `{"model":"bench;what=1"}`, `{"model":"bench;turns=x"}`} {
		if _, _, err := parseScript([]byte(body)); err == nil {
			t.Errorf("parseScript(%s) took it", body)
		}
	}
}

func TestTurnsAreToolCallsUntilAllAreAnswered(t *testing.T) {
	s := New()
	model := Script{Turns: 2}.Model()
	for turn, want := range []string{"tool_calls", "tool_calls", "stop"} {
		w := post(t, s, `{"model":"`+model+`","messages":[`+strings.Repeat(`{"role":"tool"},`, turn)+`{}]}`, nil)
		var answer struct {
			Choices []struct {
				FinishReason string `json:"finish_reason"`
				Message      struct {
					ToolCalls []struct {
						Function struct{ Arguments string }
					} `json:"tool_calls"`
				}
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Choices) != 1 {
			t.Fatalf("turn %d: %s: %v", turn, w.Body, err)
		}
		if got := answer.Choices[0].FinishReason; got != want {
			t.Errorf("turn %d ends with %q, want %q", turn, got, want)
		}
		for _, call := range answer.Choices[0].Message.ToolCalls {
			if !json.Valid([]byte(call.Function.Arguments)) {
				t.Errorf("arguments %q are no JSON", call.Function.Arguments)
			}
		}
	}
}

func TestStreamHasTheChunksOfItsScript(t *testing.T) {
	s := New()
	for _, tt := range []struct {
		script Script
		events int
		code   string
	}{
		{Script{Chunks: 20}, 23, ""},
		{Script{Turns: 1}, 6, "values = [1, 2, 3]\nprint(sum(values) * 7)"},
		{Script{Turns: 1, Code: 10 * time.Microsecond}, 16, strings.Repeat("pass\n", 10) + "values = [1, 2, 3]\nprint(sum(values) * 7)"},
	} {
		w := post(t, s, `{"model":"`+tt.script.Model()+`","stream":true}`, nil)
		var arguments strings.Builder
		events := strings.Split(strings.TrimSuffix(w.Body.String(), "\n\n"), "\n\n")
		for _, event := range events[:len(events)-1] {
			var chunk struct {
				Choices []struct {
					Delta struct {
						ToolCalls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
					}
				}
			}
			if err := json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &chunk); err != nil {
				t.Fatalf("%s: %v", event, err)
			}
			for _, call := range chunk.Choices[0].Delta.ToolCalls {
				arguments.WriteString(call.Function.Arguments)
			}
		}
		if len(events) != tt.events || events[len(events)-1] != "data: [DONE]" {
			t.Errorf("%+v: %d events, want %d: %s", tt.script, len(events), tt.events, w.Body)
		}
		var call struct{ Code string }
		if tt.code != "" && (json.Unmarshal([]byte(arguments.String()), &call) != nil || call.Code != tt.code) {
			t.Errorf("%+v: arguments are %q", tt.script, arguments.String())
		}
	}
}

func TestAnyChangeOfABodyIsCounted(t *testing.T) {
	body := `{"model":"` + Script{}.Model() + `","x":"AAAA"}`
	early := `{"model":"` + Script{Early: true}.Model() + `","x":"AAAA"}`
	for _, tt := range []struct {
		name, body string
		header     http.Header
		wrong      int64
	}{
		{"untouched", body, http.Header{SizeHeader: {strconv.Itoa(len(body))}, SumHeader: {Sum([]byte(body))}, FillHeader: {"A"}}, 0},
		{"shortened", body[:len(body)-1], http.Header{SizeHeader: {strconv.Itoa(len(body))}}, 1},
		{"changed", strings.Replace(body, "x", "y", 1), http.Header{SumHeader: {Sum([]byte(body))}}, 1},
		{"of another request", body, http.Header{FillHeader: {"B"}}, 1},
		{"answered early", early, http.Header{FillHeader: {"A"}}, 0},
		{"answered early, of another request", early, http.Header{FillHeader: {"B"}}, 1},
	} {
		s := New()
		server := httptest.NewServer(s)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v1/chat/completions", strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = tt.header
		resp, err := http.DefaultClient.Do(r)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(tt.name, resp, err)
		}
		resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		server.Close() // waits for the handler
		if got := s.Wrong.Load(); got != tt.wrong {
			t.Errorf("%s: %d wrong bodies, want %d", tt.name, got, tt.wrong)
		}
	}
}
