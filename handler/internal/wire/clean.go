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

package wire

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// CleanText makes output of a program fit for a model: no escape sequences of
// terminals, no redrawn lines but their last state, no control characters but
// tabs and line feeds, and valid UTF-8. It is idempotent.
func CleanText(s string) string {
	if isClean(s) {
		return s
	}
	s = stripControls(strings.ToValidUTF8(s, "\uFFFD"))
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	var sb strings.Builder
	for line := range strings.Lines(s) {
		end := ""
		if strings.HasSuffix(line, "\n") {
			line, end = line[:len(line)-1], "\n"
		}
		sb.WriteString(lastRedraw(line))
		sb.WriteString(end)
	}
	return sb.String()
}

// isClean says whether there is nothing to do, as in most outputs.
func isClean(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f || c == 0xc2 {
			return false // 0xc2 starts the second block of controls
		}
	}
	return utf8.ValidString(s)
}

// lastRedraw returns what is left on the screen of a line in which carriage
// returns begin it anew.
func lastRedraw(line string) string {
	line = strings.TrimRight(line, "\r")
	if i := strings.LastIndexByte(line, '\r'); i >= 0 {
		return line[i+1:]
	}
	return line
}

// stripControls removes escape sequences and control characters. NUL becomes
// U+FFFD, as it stands for data. Carriage returns stay.
func stripControls(s string) string {
	var sb strings.Builder
	sb.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == 0x1b:
			i += escapeSequence(s[i:])
			continue
		case r == 0x9b:
			i += n + controlSequence(s[i+n:])
			continue
		case r == 0:
			sb.WriteRune(utf8.RuneError)
		case r == '\n' || r == '\t' || r == '\r':
			sb.WriteRune(r)
		case r < ' ' || 0x7f <= r && r <= 0x9f:
		default:
			sb.WriteString(s[i : i+n])
		}
		i += n
	}
	return sb.String()
}

// escapeSequence returns the length of the sequence that starts with the ESC
// at the start of s; what is no sequence is the ESC alone.
func escapeSequence(s string) int {
	if len(s) < 2 {
		return 1
	}
	switch c := s[1]; {
	case c == '[':
		return 2 + controlSequence(s[2:])
	case c == ']', c == 'P', c == 'X', c == '^', c == '_':
		return 2 + controlString(s[2:])
	case ' ' <= c && c <= '/': // such as the choice of a character set
		i := 1
		for i < len(s) && ' ' <= s[i] && s[i] <= '/' {
			i++
		}
		if i < len(s) && '0' <= s[i] && s[i] <= '~' {
			i++
		}
		return i
	case '0' <= c && c <= '~':
		return 2
	}
	return 1
}

// controlSequence returns the length of the parameters and the end of a CSI
// sequence.
func controlSequence(s string) int {
	i := 0
	for i < len(s) && ' ' <= s[i] && s[i] <= '?' {
		i++
	}
	if i < len(s) && '@' <= s[i] && s[i] <= '~' {
		i++
	}
	return i
}

// controlString returns the length of the text and the end of an OSC or a
// similar sequence: BEL, ST, or the end of the line for one that was cut off.
func controlString(s string) int {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == 0x07:
			return i + 1
		case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
			return i + 2
		case s[i] == '\n', s[i] == 0x1b:
			return i
		}
	}
	return len(s)
}

// CapText shortens s to at most limit characters: its head and its tail, and
// between them how much was dropped.
func CapText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := utf8.RuneCountInString(s)
	if n <= limit {
		return s
	}
	const room = 64 // for the words between
	keep := max(limit-room, 0)
	head := byteOffset(s, keep*2/3)
	tail := byteOffset(s, n-(keep-keep*2/3))
	return fmt.Sprintf("%s\n[... %d characters omitted ...]\n%s", s[:head], n-keep, s[tail:])
}

// byteOffset returns where the rune of a number starts.
func byteOffset(s string, rune int) int {
	for i := range s {
		if rune == 0 {
			return i
		}
		rune--
	}
	return len(s)
}
