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

package scriptedmodel

import (
	"crypto/rand"
	"slices"
	"strings"
)

// call is one tool call of an answer.
type call struct {
	id, name, arguments string
}

// answer is what the model says in one turn, apart from its form on the wire.
type answer struct {
	text   string
	calls  []call
	finish string
	faults faults
	script script
}

// answerTo decides what the model says to a request.
func answerTo(req *request) answer {
	lastUser := -1
	for i, m := range req.Messages {
		if m.Role == "user" {
			lastUser = i
		}
	}
	s := script{rounds: 1}
	if lastUser >= 0 {
		s = readScript(string(req.Messages[lastUser].Content))
	}
	since := req.Messages[lastUser+1:]
	rounds := 0 // turns with tool calls since the user spoke
	for _, m := range since {
		if len(m.ToolCalls) > 0 {
			rounds++
		}
	}
	a := answer{finish: "stop", script: s, faults: s.first}
	if rounds > 0 {
		a.faults = s.after
	}
	if calls := s.plan(req, rounds); len(calls) > 0 {
		a.calls, a.finish = calls, "tool_calls"
		if s.calls.talk {
			a.text = "Let me run that."
		}
		return a
	}
	a.text = say(s, since)
	return a
}

// plan returns the calls the model makes after that many rounds of calls.
func (s script) plan(req *request, rounds int) []call {
	if req.ToolChoice.mode == "none" || rounds >= s.rounds {
		return nil
	}
	var calls []call
	if i := slices.IndexFunc(req.Tools, tool.takesCode); i >= 0 && s.code != "" && !s.calls.other {
		args := encode(map[string]string{"code": s.code})
		calls = append(calls, newCall(req.Tools[i], args))
		if s.calls.twice {
			calls = append(calls, newCall(req.Tools[i], args))
		}
	}
	if s.calls.both || s.calls.other {
		isOther := func(t tool) bool { return t.Type == "function" && !t.takesCode() }
		if i := slices.IndexFunc(req.Tools, isOther); i >= 0 {
			calls = append(calls, newCall(req.Tools[i], req.Tools[i].sampleArguments()))
		}
	}
	return calls
}

func newCall(t tool, arguments string) call {
	return call{id: "call_" + rand.Text()[:24], name: t.Function.Name, arguments: arguments}
}

// say returns the text of a turn without calls; since holds what came after
// the last user message.
func say(s script, since []message) string {
	var results []string
	for _, m := range since {
		if m.Role == "tool" {
			results = append(results, "The tool returned: "+strings.TrimRight(string(m.Content), "\n"))
		}
	}
	switch {
	case len(results) > 0:
		return strings.Join(results, "\n")
	case s.code != "":
		return "No tool of this request takes code, so this was not run:\n" + s.code
	default:
		return "Hello from the scripted model. Quote Python after a colon and it is run, as in: Run this: print(6*7)"
	}
}
