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
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// defaultSlow is the time between two chunks that [slow] asks for.
const defaultSlow = 200 * time.Millisecond

// script is what the last user message asks for.
type script struct {
	code   string // the quoted Python; "" when there is none
	calls  knobs  // which calls the model makes; knobs without " after"
	rounds int    // how many times the code tool is called
	slow   time.Duration
	first  faults // what goes wrong in the turn that answers the user
	after  faults // what goes wrong in the turns after a tool result
}

// knobs say which calls the model makes in the turn that answers the user.
type knobs struct {
	talk, both, other, twice bool
}

// faults are the ways in which an answer goes wrong.
type faults struct {
	status     int // answer with this status; 0: no such fault
	html       bool
	failStream bool
	cut        bool
	silent     time.Duration
}

var (
	// knobPattern finds [name], [name 12.5] and [name 12.5 after].
	knobPattern = regexp.MustCompile(`\[([a-z-]+)(?: ([0-9.]+))?( after)?\]`)
	// fencePattern finds a fence that opens a line or follows a colon.
	fencePattern = regexp.MustCompile("(?:^|\n|: ?)[ \t]*```[a-zA-Z0-9]*[ \t]*\n")
	colonPattern = regexp.MustCompile(`:\s`)
)

// readScript reads the script out of a user message.
func readScript(msg string) script {
	words, code := splitCode(msg)
	s := script{code: code, rounds: 1}
	for _, m := range knobPattern.FindAllStringSubmatch(words, -1) {
		s.turn(m[1], m[2], m[3] != "")
	}
	return s
}

// splitCode divides a message into the words in front of the code and the code.
func splitCode(msg string) (words, code string) {
	if loc := fencePattern.FindStringIndex(msg); loc != nil {
		code, _, _ = strings.Cut(msg[loc[1]:], "\n```")
		return msg[:loc[0]], strings.TrimSpace(code)
	}
	loc := colonPattern.FindStringIndex(msg)
	if loc == nil {
		return msg, ""
	}
	code = strings.TrimSpace(msg[loc[1]:])
	if quoted := strings.Trim(code, "`"); len(quoted) == len(code)-2 && !strings.Contains(quoted, "`") {
		code = quoted
	}
	return msg[:loc[0]], code
}

// turn applies one knob. Words that are none are left to the reader.
func (s *script) turn(name, value string, after bool) {
	number, err := strconv.ParseFloat(value, 64)
	given := err == nil
	f := &s.first
	if after {
		f = &s.after
	}
	switch name {
	case "talk":
		s.calls.talk = true
	case "both":
		s.calls.both = true
	case "other":
		s.calls.other = true
	case "twice":
		s.calls.twice = true
	case "rounds":
		s.rounds = int(number)
	case "loop":
		s.rounds = math.MaxInt
	case "slow":
		s.slow = defaultSlow
		if given {
			s.slow = seconds(number)
		}
	case "silent":
		f.silent = seconds(number)
	case "status":
		f.status = int(number)
	case "fail":
		f.status = 500
	case "html":
		f.status, f.html = int(number), true
	case "fail-stream":
		f.failStream = true
	case "cut":
		f.cut = true
	}
}

func seconds(n float64) time.Duration {
	return time.Duration(n * float64(time.Second))
}
