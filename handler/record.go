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

package handler

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// record is what one run of code has put out, in the order of its arrival.
type record struct {
	text    strings.Builder
	results []*e2b.Result // those with a picture or a chart
	raised  bool          // the code ended in an error
}

// add takes an event of the execution.
func (rec *record) add(ev e2b.Event) {
	switch ev.Type {
	case e2b.Stdout, e2b.Stderr:
		rec.text.WriteString(ev.Text)
	case e2b.ResultEvent:
		rec.line(describe(ev.Result))
		if ev.Result.PNG != "" || len(ev.Result.Chart) > 0 {
			rec.results = append(rec.results, ev.Result)
		}
	case e2b.ErrorEvent:
		if !lossOfKernel(ev.Name) {
			rec.raised = true
			rec.line(Traceback(ev))
		}
	case e2b.NumberOfExecutions, e2b.Keepalive, e2b.EndOfExecution:
	}
}

// lossOfKernel says whether an error is not of the code but of the server; the
// outcome of the run says it in its own words.
func lossOfKernel(name string) bool {
	switch name {
	case e2b.ContextRestarting, e2b.UnexpectedEndOfExecution, "WebSocketError":
		return true
	}
	return false
}

// line begins a new line for s, unless there is nothing before or in it.
func (rec *record) line(s string) {
	if s == "" {
		return
	}
	if have := rec.text.String(); have != "" && !strings.HasSuffix(have, "\n") {
		rec.text.WriteByte('\n')
	}
	rec.text.WriteString(s)
	rec.text.WriteByte('\n')
}

// describe returns a result as text: its text, and what there is that text
// cannot show.
func describe(r *e2b.Result) string {
	var lines []string
	for _, s := range []string{r.Text, r.Markdown, r.Latex, string(r.JSON), r.HTML, r.JavaScript} {
		if s != "" {
			lines = append(lines, s)
			break
		}
	}
	for _, file := range []struct {
		kind string
		size int
	}{
		{"image/png", decodedSize(r.PNG)}, {"image/jpeg", decodedSize(r.JPEG)}, {"application/pdf", decodedSize(r.PDF)}, {"image/svg+xml", len(r.SVG)},
	} {
		if file.size > 0 {
			lines = append(lines, fmt.Sprintf("[%s, %d bytes]", file.kind, file.size))
		}
	}
	return strings.Join(lines, "\n")
}

// decodedSize returns how many bytes there are in base64, which may be broken
// into lines.
func decodedSize(s string) int {
	s = strings.TrimRight(s, "=\n")
	return base64.RawStdEncoding.DecodedLen(len(s) - strings.Count(s, "\n"))
}

const tracebackHead = "Traceback (most recent call last)"

// Traceback returns the text of an error as a model sees it, with its name and
// value once. The servers join the parts of a traceback without line breaks,
// and begin it with a rule and the name.
func Traceback(ev e2b.Event) string {
	s := wire.CleanText(ev.Traceback)
	if i := strings.Index(s, tracebackHead); i >= 0 {
		s = tracebackHead + ":\n" + strings.TrimLeft(s[i+len(tracebackHead):], ":\n")
	}
	name, value := wire.CleanText(ev.Name), wire.CleanText(ev.Value)
	if !tells(s, name) {
		s = strings.TrimRight(s, "\n") + "\n" + name
		if value != "" {
			s += ": " + value
		}
	}
	return strings.Trim(s, "\n")
}

// tells says whether a traceback has a line with the name of the error. What
// follows there may differ from the error's value: that of a SyntaxError also
// has the name of a file that nobody knows.
func tells(traceback, name string) bool {
	for line := range strings.Lines(traceback) {
		if rest, ok := strings.CutPrefix(line, name); ok && (strings.TrimSpace(rest) == "" || rest[0] == ':') {
			return true
		}
	}
	return false
}

// content returns the result of a run for the model: never empty, and short
// enough.
func (rec *record) content(o session.Outcome, limit int) string {
	var parts []string
	if note := lossNote(o); note != "" {
		parts = append(parts, note)
	}
	if text := strings.TrimRight(wire.CleanText(rec.text.String()), "\n"); strings.TrimSpace(text) != "" {
		parts = append(parts, wire.CapText(text, limit))
	}
	if note := endNote(o); note != "" {
		parts = append(parts, note)
	}
	if len(parts) == 0 {
		return "(no output)"
	}
	return strings.Join(parts, "\n")
}

// lossNote tells that earlier variables are gone, before the output of a
// program that may miss them.
func lossNote(o session.Outcome) string {
	if !o.StateLost || o.Status == session.Interrupted || o.Status == session.Restarted {
		return ""
	}
	if !o.FilesLost {
		return "[Note: the Python interpreter of this session was restarted. Variables and imports of earlier runs are lost; files are still there.]"
	}
	return "[Note: the sandbox of this session was replaced. Its state is lost: variables, imports and files of earlier runs are gone.]"
}

// endNote tells how a run ended that did not come to its own end.
func endNote(o session.Outcome) string {
	switch o.Status {
	case session.Done:
		return ""
	case session.TimedOut:
		return fmt.Sprintf("[The program timed out: it was stopped after %s, the time limit.]", o.Ran.Round(100*time.Millisecond))
	case session.Interrupted:
		return "[The sandbox was lost while the program ran: it did not finish, and was not run again. Variables, imports and files of this session are gone.]"
	case session.TooMuchOutput:
		return "[The program was stopped because it wrote more output than is allowed. Print less.]"
	case session.Unavailable:
		return "Error: no Python sandbox is available at the moment. The program was not run."
	case session.Busy:
		return "Error: the Python sandbox was busy for too long. The program was not run. Try again later."
	case session.Restarted:
		return "[The Python interpreter ended and was restarted. All variables and imports are lost; files are still there.]"
	case session.Canceled:
		return "[The program was stopped because the request ended.]"
	}
	return "Error: the program did not run to its end."
}
