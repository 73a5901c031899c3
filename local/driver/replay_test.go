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

package driver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	_ "image/png" // decodes what figures are
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The recordings are what a real server of the protocol answered, IPython
// behind it. They are one session, in the order of their names.
const recordings = "../../e2b/testdata/transcripts"

// recording is one request and its answer.
type recording struct {
	name    string
	Request struct {
		Method string `json:"method"`
		Path   string `json:"path"`
		Body   struct {
			Code      string            `json:"code"`
			ContextID string            `json:"context_id"`
			Language  string            `json:"language"`
			Cwd       string            `json:"cwd"`
			EnvVars   map[string]string `json:"env_vars"`
		} `json:"body"`
	} `json:"request"`
	Status        int  `json:"status"`
	ClientAborted bool `json:"client_aborted"`
	answer        []byte
}

func load(t *testing.T) []recording {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(recordings, "*.meta.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no recordings in %s: %v", recordings, err)
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
		all[i].name = filepath.Base(base)
		if all[i].answer, err = os.ReadFile(base + ".ndjson"); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// events are the recorded events but for the last one, which ends the answer.
func (r recording) events(t *testing.T) []event {
	t.Helper()
	var events []event
	for line := range bytes.Lines(r.answer) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		if e.Type != "end_of_execution" {
			events = append(events, e)
		}
	}
	return events
}

// accepted are the differences from the recordings that are meant, by name of
// the recording. Each function takes the recorded events to what is wanted.
var accepted = map[string]func([]event) []event{
	// The figure is the value of the cell and still open at its end: E2B shows
	// it twice. Once is enough.
	"11-chart-bar-fig": func(events []event) []event { return events[:2] },
	// Keep-alives are the business of the server in front of the driver.
	"16-keepalive": func(events []event) []event {
		return slices.DeleteFunc(events, func(e event) bool { return e.Type == "keepalive" })
	},
	// IPython adds how to leave a terminal, which is no use to anybody here.
	"22-sysexit": func(events []event) []event { return events[:2] },
	// The frame inside ipykernel is IPython's own; the last one is the user's.
	"24-input": func(events []event) []event {
		own := regexp.MustCompile(`(?s)\nFile /usr/lib/python3/dist-packages/ipykernel/.*\nStdin`)
		events[1].Traceback = own.ReplaceAllString(events[1].Traceback, "\nStdin")
		return events
	},
	// IPython runs commands on a pseudo-terminal, which writes CR LF.
	"26-bang": func(events []event) []event {
		events[1].Text = strings.ReplaceAll(events[1].Text, "\r\n", "\n")
		return events
	},
	// Pillow offers JPEG besides PNG from version 10.1 on.
	"31-pil-image": func(events []event) []event {
		events[1].JPEG = ""
		return events
	},
}

// shortened are the programs that wait longer than their test has to.
var shortened = map[string][2]string{"16-keepalive": {"time.sleep(12)", "time.sleep(0.1)"}}

func TestRecordedExecutionsAreReproduced(t *testing.T) {
	p := start(t)
	for _, r := range load(t) {
		body := r.Request.Body
		context := body.ContextID
		if context == "" {
			context = "c"
		}
		switch {
		case r.Status != 200 && r.Status != 204 || r.Request.Method == http.MethodGet:
			// Answered by the server in front of the driver.
		case r.Request.Method == http.MethodDelete:
			p.control("remove", "removed", filepath.Base(r.Request.Path))
		case strings.HasSuffix(r.Request.Path, "/restart"):
			p.control("restart", "restarted", filepath.Base(filepath.Dir(r.Request.Path)))
		case r.Request.Path == "/contexts":
			var made struct{ ID, Cwd string }
			if err := json.Unmarshal(r.answer, &made); err != nil {
				t.Fatal(err)
			}
			p.create(made.ID, map[string]any{"cwd": strings.Replace(made.Cwd, "/home/user", p.home, 1)})
		case r.ClientAborted:
			t.Run(r.name, func(t *testing.T) { replayAborted(t, p, r) })
		default:
			t.Run(r.name, func(t *testing.T) { replay(t, p, context, r) })
		}
	}
}

func (p *program) control(op, answer, context string) {
	p.t.Helper()
	p.send(map[string]any{"op": op, "context": context})
	if e := p.next(); e.Type != answer || e.Context != context {
		p.t.Fatalf("answer to %s: %+v", op, e)
	}
}

func replay(t *testing.T, p *program, context string, r recording) {
	body := r.Request.Body
	code := body.Code
	if short, ok := shortened[r.name]; ok {
		code = strings.Replace(code, short[0], short[1], 1)
	}
	got := p.end(context, p.begin(context, code, map[string]any{"language": body.Language, "env_vars": body.EnvVars}))
	want := r.events(t)
	if accept, ok := accepted[r.name]; ok {
		want = accept(want)
	}
	got, want = normalized(t, p, got), normalized(t, p, want)
	if r.name == "25-subprocess" { // tells of the machine: user and files
		got[1].Text, want[1].Text = "", ""
	}
	if len(got) != len(want) {
		t.Fatalf("%d events, recorded are %d:\n got %+v\nwant %+v", len(got), len(want), got, want)
	}
	for i := range got {
		comparePNG(t, got[i].PNG, want[i].PNG)
		got[i].PNG, want[i].PNG, got[i].JPEG = "", "", ""
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("event %d\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
}

// replayAborted interrupts what the recording's client left behind.
func replayAborted(t *testing.T, p *program, r recording) {
	run := p.begin("c", r.Request.Body.Code, nil)
	first := p.next()
	if want := r.events(t)[0]; first.Type != want.Type || first.ExecutionCount != want.ExecutionCount {
		t.Errorf("first event is %+v, recorded is %+v", first, want)
	}
	text := ""
	for r.name == "40-disconnect" && !strings.Contains(text, "late") {
		// The timer of an earlier cell prints into this one.
		text += p.next().Text
	}
	p.send(map[string]any{"op": "interrupt", "context": "c", "run": run})
	events := p.end("c", run)
	if len(events) == 0 || events[len(events)-1].Name != "KeyboardInterrupt" {
		t.Errorf("interrupted run ended with %+v", events)
	}
}

var (
	cellFile   = regexp.MustCompile(`/tmp/ipykernel_\d+/`)
	cellNumber = regexp.MustCompile(`\d+\.py`)
	times      = regexp.MustCompile(`\(\d+ times\)`)
)

// normalized takes out of events what differs in every run: the time, the names
// of cells' files, the home directory, and how text was cut into events.
func normalized(t *testing.T, p *program, events []event) []event {
	t.Helper()
	var out []event
	for _, e := range events {
		if e.Type == "stdout" || e.Type == "stderr" {
			if !strings.HasSuffix(e.Timestamp, "+00:00") {
				t.Errorf("timestamp %q is not in UTC", e.Timestamp)
			}
			if len(out) > 0 && out[len(out)-1].Type == e.Type {
				out[len(out)-1].Text += e.Text
				continue
			}
		}
		e.Timestamp, e.Context, e.Run = "", "", ""
		for _, field := range []*json.RawMessage{&e.JSON, &e.Data, &e.Chart, &e.Extra} {
			*field = canonical(t, *field)
		}
		out = append(out, e)
	}
	for i := range out {
		e := &out[i]
		e.Text = cellNumber.ReplaceAllString(cellFile.ReplaceAllString(e.Text, "/tmp/cells/"), "N.py")
		e.Text = strings.ReplaceAll(e.Text, p.home, "/home/user")
		e.Value = cellNumber.ReplaceAllString(e.Value, "N.py")
	}
	return out
}

// canonical gives equal JSON equal bytes.
func canonical(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	if raw == nil {
		return nil
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%.200s: %v", raw, err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// comparePNG compares the sizes of two pictures: other versions of matplotlib
// draw other pixels, and fonts move the edge by some.
func comparePNG(t *testing.T, got, want string) {
	t.Helper()
	if (got == "") != (want == "") {
		t.Errorf("picture of %d characters, recorded is one of %d", len(got), len(want))
		return
	}
	if got == "" {
		return
	}
	a, b := pngSize(t, got), pngSize(t, want)
	if d := a.Sub(b); max(d.X, -d.X, d.Y, -d.Y) > 12 {
		t.Errorf("picture of %v, recorded is one of %v", a, b)
	}
}

func pngSize(t *testing.T, encoded string) image.Point {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	decoded, format, err := image.Decode(bytes.NewReader(data))
	if err != nil || format != "png" {
		t.Fatalf("picture is no PNG: %v", err)
	}
	return decoded.Bounds().Size()
}
