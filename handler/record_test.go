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
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

func stdout(s string) e2b.Event { return e2b.Event{Type: e2b.Stdout, Text: s} }

func stderr(s string) e2b.Event { return e2b.Event{Type: e2b.Stderr, Text: s} }

func shown(r e2b.Result) e2b.Event { return e2b.Event{Type: e2b.ResultEvent, Result: &r} }

func raised(name, value, traceback string) e2b.Event {
	return e2b.Event{Type: e2b.ErrorEvent, Name: name, Value: value, Traceback: traceback}
}

func TestResultsForTheModel(t *testing.T) {
	const rule = "---------------------------------------------------------------------------"
	for _, c := range []struct {
		name   string
		events []e2b.Event
		want   string
		raised bool
	}{
		{"nothing", nil, "(no output)", false},
		{"other events", []e2b.Event{{Type: e2b.NumberOfExecutions, ExecutionCount: 1}, {Type: e2b.Keepalive}, {Type: e2b.EndOfExecution}}, "(no output)", false},
		{"line feeds alone", []e2b.Event{stdout("\n\n")}, "(no output)", false},
		{"white space alone", []e2b.Event{stdout("  \t\r\n\u2028\u00a0\n")}, "(no output)", false},
		{"output in pieces", []e2b.Event{stdout("a"), stdout("b\n"), stdout("  c\n")}, "ab\n  c", false},
		{"the order of arrival", []e2b.Event{stdout("a\n"), stderr("warning\n"), shown(e2b.Result{Text: "42"}), stdout("b\n")}, "a\nwarning\n42\nb", false},
		{"a result behind a line that is open", []e2b.Event{stdout("a"), shown(e2b.Result{Text: "42"})}, "a\n42", false},
		{"progress", []e2b.Event{stdout("10%\r"), stdout("20%\r"), stdout("\x1b[32m100%\x1b[0m\n")}, "100%", false},
		{"a result that is text", []e2b.Event{shown(e2b.Result{Text: "T", HTML: "<b>T</b>"})}, "T", false},
		{"a result without text", []e2b.Event{shown(e2b.Result{HTML: "<b>T</b>"})}, "<b>T</b>", false},
		{"a result in JSON", []e2b.Event{shown(e2b.Result{JSON: json.RawMessage(`{"a":1}`)})}, `{"a":1}`, false},
		{"a plot", []e2b.Event{shown(e2b.Result{Text: "<Figure size 640x480>", PNG: "aGVsbG8="})}, "<Figure size 640x480>\n[image/png, 5 bytes]", false},
		{"a picture in lines of base64", []e2b.Event{shown(e2b.Result{PNG: "aGVs\nbG8h\n"})}, "[image/png, 6 bytes]", false},
		{"other files", []e2b.Event{shown(e2b.Result{JPEG: "aGk=", PDF: "aA==", SVG: "<svg/>"})}, "[image/jpeg, 2 bytes]\n[application/pdf, 1 bytes]\n[image/svg+xml, 6 bytes]", false},
		{
			"an error",
			[]e2b.Event{
				stdout("before\n"),
				raised("ZeroDivisionError", "division by zero", "\x1b[31m"+rule+"\x1b[39m\x1b[31mZeroDivisionError\x1b[39m                         Traceback (most recent call last)Cell \x1b[32mIn[7]\x1b[39m, line 2\n----> 2 1/0\n\x1b[31mZeroDivisionError\x1b[39m: division by zero"),
			},
			"before\nTraceback (most recent call last):\nCell In[7], line 2\n----> 2 1/0\nZeroDivisionError: division by zero", true,
		},
		{
			"an error of syntax",
			[]e2b.Event{raised("SyntaxError", "invalid syntax (1063758517.py, line 1)", "  Cell In[8], line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax\n")},
			"  Cell In[8], line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax", true,
		},
		{"an error without a traceback", []e2b.Event{raised("ValueError", "1", "")}, "ValueError: 1", true},
		{"an error without a value", []e2b.Event{raised("StopIteration", "", "")}, "StopIteration", true},
		{"an error that its traceback does not name", []e2b.Event{raised("KeyError", "1", "Cell In[1], line 1\n----> 1 d[1]\n")}, "Cell In[1], line 1\n----> 1 d[1]\nKeyError: 1", true},
		{"an error without value in its traceback", []e2b.Event{raised("KeyboardInterrupt", "", rule+"KeyboardInterrupt      Traceback (most recent call last)Cell In[1], line 1\n----> 1 x\nKeyboardInterrupt: ")}, "Traceback (most recent call last):\nCell In[1], line 1\n----> 1 x\nKeyboardInterrupt: ", true},
		{"a kernel that ended", []e2b.Event{stdout("a\n"), raised("ContextRestarting", "Context was restarted", ""), raised("UnexpectedEndOfExecution", "", "")}, "a", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var rec record
			for _, ev := range c.events {
				rec.add(ev)
			}
			if got := rec.content(session.Outcome{Status: session.Done}, 1000); got != c.want || rec.raised != c.raised {
				t.Errorf("got %q, raised %t", got, rec.raised)
			}
		})
	}
}

func TestPicturesAndChartsAreKeptForTheClient(t *testing.T) {
	var rec record
	rec.add(shown(e2b.Result{Text: "a"}))
	rec.add(shown(e2b.Result{PNG: "aA=="}))
	rec.add(shown(e2b.Result{Chart: json.RawMessage(`{"type":"bar"}`)}))
	if len(rec.results) != 2 || rec.results[0].PNG == "" || rec.results[1].Chart == nil {
		t.Errorf("kept %v", rec.results)
	}
	if got := rec.content(session.Outcome{Status: session.Done}, 1000); strings.Contains(got, "aA==") || strings.Contains(got, "bar") {
		t.Errorf("the model gets %q", got)
	}
}

func TestLongResultsAreCapped(t *testing.T) {
	var rec record
	rec.add(stdout("HEAD" + strings.Repeat("é\x1b[0m", 100_000)))
	rec.add(raised("ValueError", "the end", ""))
	got := rec.content(session.Outcome{Status: session.Done}, 1000)
	if n := utf8.RuneCountInString(got); n > 1000 || !utf8.ValidString(got) {
		t.Errorf("%d characters", n)
	}
	if !strings.HasPrefix(got, "HEAD") || !strings.HasSuffix(got, "ValueError: the end") || !strings.Contains(got, "characters omitted") {
		t.Errorf("got %q", got)
	}
}

// The model learns in plain words what became of a run, and of its state once.
func TestHowARunEndedIsTold(t *testing.T) {
	for _, c := range []struct {
		outcome session.Outcome
		says    []string
		silent  string // what is not said
	}{
		{session.Outcome{Status: session.Done, StateLost: true, FilesLost: true}, []string{"replaced", "state is lost", "files", "gone", "out"}, "still there"},
		{session.Outcome{Status: session.Done, StateLost: true}, []string{"restarted", "lost", "files are still there", "out"}, "replaced"},
		{session.Outcome{Status: session.TimedOut, Ran: 1234 * time.Millisecond}, []string{"out", "timed out", "1.2s"}, "lost"},
		{session.Outcome{Status: session.TimedOut, StateLost: true}, []string{"timed out", "lost"}, "fit"},
		{session.Outcome{Status: session.Interrupted, StateLost: true}, []string{"out", "did not finish", "not run again", "gone"}, "replaced"},
		{session.Outcome{Status: session.TooMuchOutput}, []string{"out", "more output"}, "lost"},
		{session.Outcome{Status: session.Unavailable}, []string{"no Python sandbox", "not run"}, "lost"},
		{session.Outcome{Status: session.Busy}, []string{"busy", "not run"}, "lost"},
		{session.Outcome{Status: session.Restarted, StateLost: true}, []string{"out", "restarted", "lost", "files are still there"}, "replaced"},
		{session.Outcome{Status: session.Canceled}, []string{"stopped"}, "lost"},
	} {
		t.Run(c.outcome.Status.String(), func(t *testing.T) {
			var rec record
			rec.add(stdout("out\n"))
			got := rec.content(c.outcome, 1000)
			for _, s := range c.says {
				if !strings.Contains(got, s) {
					t.Errorf("%q does not say %q", got, s)
				}
			}
			if strings.Contains(got, c.silent) || strings.Count(got, "lost") > 1 && c.outcome.Status == session.Restarted {
				t.Errorf("%q says %q", got, c.silent)
			}
		})
	}
}
