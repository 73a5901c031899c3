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
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// executions are the programs that an exchange has run, as the client sees
// them.
type executions struct {
	entries [][]byte
	images  int64 // bytes of pictures and charts given out
}

// codeResult is an element of code_results of one of them.
type codeResult struct {
	Text  string          `json:"text,omitempty"`
	PNG   string          `json:"png,omitempty"`
	Chart json.RawMessage `json:"chart,omitempty"`
}

// shown returns the array for an answer in one piece, nil when there is none.
func (e *executions) shown() []byte {
	if len(e.entries) == 0 {
		return nil
	}
	return slices.Concat([]byte("["), bytes.Join(e.entries, []byte(",")), []byte("]"))
}

// codeResults returns the pictures and charts of a run in JSON, as long as they
// are within the limit; of others it says what they were. It returns nil when
// there are none, or a chart is no JSON.
func (e *executions) codeResults(results []*e2b.Result, limit int64) []byte {
	if len(results) == 0 {
		return nil
	}
	var list []codeResult
	for _, r := range results {
		size := int64(len(r.PNG) + len(r.Chart))
		if e.images+size > limit {
			list = append(list, codeResult{Text: fmt.Sprintf("%s [%d bytes, left out: over the limit for images]", r.Text, size)})
			continue
		}
		e.images += size
		list = append(list, codeResult{Text: r.Text, PNG: r.PNG, Chart: r.Chart})
	}
	array, err := json.Marshal(list)
	if err != nil {
		return nil
	}
	return array
}

// failure is the last program that failed, or call that could not be run, and
// how often it did in a row.
type failure struct {
	code, content string
	times         int
}

// cellNumber is what a traceback calls a cell by. It is another one each time.
var cellNumber = regexp.MustCompile(`\bIn ?\[\d+\]`)

// note counts a run, or a call that was none.
func (f *failure) note(code, content string, failed bool) {
	if failed {
		content = cellNumber.ReplaceAllLiteralString(content, "In []")
	}
	switch {
	case !failed:
		*f = failure{}
	case f.code == code && f.content == content:
		f.times++
	default:
		*f = failure{code: code, content: content, times: 1}
	}
}

// execute answers the calls of a turn that are not the client's.
func (x *exchange) execute(a *wire.Answer) (pastTurn, error) {
	past := pastTurn{answer: a}
	for _, call := range a.Calls() {
		var program wire.Program
		owner, _ := x.tools.Owner(call.Name)
		if owner == wire.Gateway {
			program = call.Program()
		} else {
			program = call.Foreign()
		}
		past.calls = append(past.calls, wire.Echoed{Call: call, Arguments: program.Echo, Ours: owner == wire.Gateway})
		if owner == wire.Client {
			continue
		}
		content := program.Problem
		switch {
		case owner == wire.Nobody:
			content = wire.UnknownTool(call.Name, x.tools.Name)
		case program.Problem == "":
			var err error
			if content, err = x.runCode(program); err != nil {
				return past, err
			}
		}
		if owner == wire.Nobody || program.Problem != "" {
			x.last.note(call.Name+string(program.Echo), content, true)
		}
		past.results = append(past.results, wire.ToolMessage(call, content))
	}
	return past, nil
}

// runCode runs a program and returns the result for the model. The error is
// that of the request's context: the exchange is over.
func (x *exchange) runCode(program wire.Program) (string, error) {
	tool := wire.ExecutedTool{Index: len(x.log.entries), Name: x.tools.Name, Arguments: program.Echo}
	if err := x.show(&tool); err != nil {
		return "", err
	}
	var rec record
	span := x.startExecution()
	outcome := x.handle.Run(x.ctx, program.Code, rec.add)
	endExecution(span, outcome)
	x.report.executions++
	x.report.sandbox = outcome.SandboxID
	x.report.sandboxTime += outcome.Waited + outcome.Ran
	x.h.Metrics.ran(outcome, rec.raised, rec.text.Len())
	if err := x.ctx.Err(); err != nil {
		return "", err
	}
	content := rec.content(outcome, x.h.MaxOutput)
	x.logRun(program, content, outcome)
	x.last.note(program.Code, content, rec.raised || outcome.Status != session.Done)

	tool.Output = &content
	if x.h.Show {
		tool.Results = x.log.codeResults(rec.results, x.h.MaxImages)
	}
	return content, x.show(&tool)
}

// show tells the client of a program that is about to run, for which there is
// time only in a stream, or has been run.
func (x *exchange) show(tool *wire.ExecutedTool) error {
	if !x.h.Show || tool.Output == nil && !x.req.Stream {
		return nil
	}
	entry := tool.JSON()
	if tool.Output != nil {
		x.log.entries = append(x.log.entries, entry)
	}
	return x.reply.executed(entry)
}

// logRun tells the operator what became of a run.
func (x *exchange) logRun(program wire.Program, content string, o session.Outcome) {
	level := zapcore.DebugLevel
	switch o.Status {
	case session.Unavailable, session.Interrupted, session.Busy:
		level = zapcore.WarnLevel
	case session.Done, session.TimedOut, session.TooMuchOutput, session.Canceled, session.Restarted:
	}
	entry := x.h.Logger.Check(level, "code execution")
	if entry == nil {
		return
	}
	fields := []zap.Field{
		zap.Stringer("status", o.Status), zap.String("sandbox", o.SandboxID), zap.Bool("state_lost", o.StateLost),
		zap.Duration("waited", o.Waited), zap.Duration("ran", o.Ran), zap.Int("round", x.rounds+1), zap.Error(o.Err),
	}
	if x.h.LogCode && level == zapcore.DebugLevel {
		fields = append(fields, zap.String("code", program.Code), zap.String("output", content))
	}
	entry.Write(fields...)
}
