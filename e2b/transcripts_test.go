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
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// recording is what a real server answered once.
type recording struct {
	name    string
	Request struct {
		Method string          `json:"method"`
		Path   string          `json:"path"`
		Body   json.RawMessage `json:"body"`
	} `json:"request"`
	Status        int         `json:"status"`
	Headers       [][2]string `json:"headers"`
	ClientAborted bool        `json:"client_aborted"`
	body          []byte
}

func recordings(t *testing.T) []recording {
	t.Helper()
	names, err := filepath.Glob("testdata/transcripts/*.meta.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	all := make([]recording, len(names))
	for i, name := range names {
		meta, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(meta, &all[i]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		base := strings.TrimSuffix(name, ".meta.json")
		if all[i].body, err = os.ReadFile(base + ".ndjson"); err != nil {
			t.Fatal(err)
		}
		all[i].name = filepath.Base(base)
	}
	return all
}

// replay is a transport that gives a recorded answer in pieces, and cuts it
// where the recording was cut.
func (rec recording) replay(t *testing.T, size int) roundTripFunc {
	return func(r *http.Request) (*http.Response, error) {
		if got := r.Method + " " + r.URL.Path; got != rec.Request.Method+" "+rec.Request.Path {
			t.Errorf("request %s, recorded %s %s", got, rec.Request.Method, rec.Request.Path)
		}
		rec.checkBody(t, r)
		var body io.Reader = &pieces{rec.body, size}
		if rec.ClientAborted {
			body = io.MultiReader(body, errReader{io.ErrUnexpectedEOF})
		}
		header := http.Header{}
		for _, h := range rec.Headers {
			header.Add(h[0], h[1])
		}
		return &http.Response{StatusCode: rec.Status, Header: header, Body: io.NopCloser(body), Request: r}, nil
	}
}

// checkBody compares the request's body with the recorded one.
func (rec recording) checkBody(t *testing.T, r *http.Request) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	if len(sent) == 0 {
		sent = []byte("null")
	}
	var got, want any
	if err := errors.Join(json.Unmarshal(sent, &got), json.Unmarshal(rec.Request.Body, &want)); err != nil {
		t.Error(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("body %s, recorded %s", sent, rec.Request.Body)
	}
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

// recordedEvents reads a body line by line and field by field, with none of the
// code under test.
func recordedEvents(t *testing.T, body []byte) []Event {
	t.Helper()
	var events []Event
	for line := range bytes.Lines(body) {
		var f map[string]json.RawMessage
		if err := json.Unmarshal(line, &f); err != nil {
			t.Fatal(err)
		}
		text := func(name string) (s string) {
			if raw, ok := f[name]; ok {
				if err := json.Unmarshal(raw, &s); err != nil {
					t.Fatal(err)
				}
			}
			return s
		}
		e := Event{Type: EventType(text("type")), Name: text("name"), Value: text("value"), Traceback: text("traceback")}
		if raw, ok := f["execution_count"]; ok {
			if err := json.Unmarshal(raw, &e.ExecutionCount); err != nil {
				t.Fatal(err)
			}
		}
		if e.Type == ResultEvent {
			e.Result = &Result{
				Text: text("text"), HTML: text("html"), Markdown: text("markdown"), SVG: text("svg"), PNG: text("png"), JPEG: text("jpeg"),
				PDF: text("pdf"), Latex: text("latex"), JavaScript: text("javascript"),
				JSON: f["json"], Chart: f["chart"],
			}
		} else {
			e.Text = text("text")
		}
		events = append(events, e)
	}
	return events
}

// replayKinds is what the recordings that are no success come to.
var replayKinds = map[string]Kind{
	"40-disconnect":           Interrupted,
	"42-disconnect-silent":    Interrupted,
	"44-disconnect-busy-loop": Interrupted,
	"56-unknown-context":      ContextGone,
	"57-both":                 Refused,
	"59-language-unknown":     Interrupted,
}

// notCalls are recordings of requests that the client never makes.
var notCalls = map[string]Kind{
	"60-bad-body":   Refused,
	"61-health":     0,
	"62-not-found":  Gone,
	"63-bad-method": Refused,
}

func TestRecordingsInPiecesOfManySizes(t *testing.T) {
	for _, rec := range recordings(t) {
		if _, ok := notCalls[rec.name]; ok {
			continue
		}
		t.Run(rec.name, func(t *testing.T) {
			for _, size := range []int{1, 2, 3, 7, 64, 1000, 4096, readBuffer - 1, readBuffer, readBuffer + 1, len(rec.body)} {
				c := newTestClient(t, rec.replay(t, size), nil)
				if rec.Request.Path == "/execute" {
					rec.checkExecute(t, c)
				} else {
					rec.checkContexts(t, c)
				}
			}
		})
	}
}

func (rec recording) checkExecute(t *testing.T, c *Client) {
	t.Helper()
	var request executeRequest
	if err := json.Unmarshal(rec.Request.Body, &request); err != nil {
		t.Fatal(err)
	}
	var got []Event
	err := c.Execute(t.Context(), newTestSandbox("sb1", ""), Execution{
		Code: request.Code, ContextID: request.ContextID, Language: request.Language, EnvVars: request.EnvVars,
	}, func(e Event) { got = append(got, e) })
	if want := replayKinds[rec.name]; KindOf(err) != want {
		t.Fatalf("error %v, want kind %q", err, want)
	}
	if rec.Status != http.StatusOK {
		if got != nil {
			t.Errorf("events of a refusal: %+v", got)
		}
		return
	}
	if want := recordedEvents(t, rec.body); !reflect.DeepEqual(got, want) {
		t.Errorf("events %+v\nwant %+v", got, want)
	}
}

func (rec recording) checkContexts(t *testing.T, c *Client) {
	t.Helper()
	sb := newTestSandbox("sb1", "")
	var want, request Context
	switch {
	case rec.Request.Method == http.MethodGet:
		var all []Context
		if err := json.Unmarshal(rec.body, &all); err != nil {
			t.Fatal(err)
		}
		got, err := c.Contexts(t.Context(), sb)
		if err != nil || !reflect.DeepEqual(got, all) {
			t.Errorf("contexts %+v, error %v, want %+v", got, err, all)
		}
	case rec.Request.Path == "/contexts":
		if err := errors.Join(json.Unmarshal(rec.body, &want), json.Unmarshal(rec.Request.Body, &request)); err != nil {
			t.Fatal(err)
		}
		if got, err := c.CreateContext(t.Context(), sb, request); err != nil || got != want {
			t.Errorf("context %+v, error %v, want %+v", got, err, want)
		}
	case rec.Request.Method == http.MethodDelete:
		if err := c.RemoveContext(t.Context(), sb, strings.TrimPrefix(rec.Request.Path, "/contexts/")); err != nil {
			t.Error(err)
		}
	default:
		id := strings.TrimSuffix(strings.TrimPrefix(rec.Request.Path, "/contexts/"), "/restart")
		if err := c.RestartContext(t.Context(), sb, id); err != nil {
			t.Error(err)
		}
	}
}

func TestRecordingsOfOtherRequests(t *testing.T) {
	for _, rec := range recordings(t) {
		want, ok := notCalls[rec.name]
		if !ok {
			continue
		}
		var body any
		if len(rec.Request.Body) > 0 && string(rec.Request.Body) != "null" {
			body = rec.Request.Body
		}
		resp, failed := newTestClient(t, rec.replay(t, 7), nil).data(t.Context(), newTestSandbox("sb1", ""),
			dataCall{op: "test", method: rec.Request.Method, path: rec.Request.Path, body: body, limit: DefaultMaxRead, runs: true})
		if resp != nil {
			resp.Body.Close()
		}
		if (failed == nil) != (want == 0) || (failed != nil && failed.Kind != want) {
			t.Errorf("%s: %v, want kind %q", rec.name, failed, want)
		}
	}
}
