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
	"bytes"
	"math/big"
	"strconv"
)

// SumUsage adds the usage of several turns, member by member and with those
// that are objects added likewise. Members that are no numbers are those of
// the last turn. A usage of one turn stays as it came; nil is none, and what is
// no object says nothing.
func SumUsage(total, turn []byte) []byte {
	switch {
	case !isObject(string(turn)) || isEmpty(turn):
		return total
	case !isObject(string(total)):
		return bytes.Clone(turn)
	}
	return sumObjects(total, turn, maxDepth)
}

func sumObjects(total, turn []byte, depth int) []byte {
	sum := part{kind: '{', value: total}
	sum.open()
	for _, m := range membersOf(turn) {
		value := m.value.of(turn)
		have := sum.members.member(m.name.of(turn))
		switch {
		case have.kind == '{' && value[0] == '{' && depth > 0:
			have.set(sumObjects(have.value, value, depth-1))
		case isNumber(have.kind) && isNumber(value[0]):
			have.set(addNumbers(have.value, value))
		case have.kind == 0 || !isNull(value):
			have.set(value)
		}
	}
	return sum.appendValue(nil)
}

func isNumber(c byte) bool { return c == '-' || '0' <= c && c <= '9' }

// addNumbers adds two JSON numbers. Those that are no integers, such as costs,
// are added as decimals, so that 0.1 and 0.2 make 0.3.
func addNumbers(a, b []byte) []byte {
	if x, ok := count(a); ok {
		if y, ok := count(b); ok {
			return strconv.AppendInt(nil, x+y, 10)
		}
	}
	if huge(a) || huge(b) {
		return b
	}
	x, ok := new(big.Rat).SetString(string(a))
	y, ok2 := new(big.Rat).SetString(string(b))
	if !ok || !ok2 {
		return b
	}
	x.Add(x, y)
	if x.IsInt() {
		return []byte(x.Num().String())
	}
	digits, _ := x.FloatPrec()
	return []byte(x.FloatString(min(digits, 20)))
}

// count reads a number that is a count, of so few digits that a sum of two is
// one too.
func count(number []byte) (n int64, ok bool) {
	if len(number) == 0 || len(number) > 18 {
		return 0, false
	}
	for _, c := range number {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// huge says whether a number has more digits than any count or cost, or an
// exponent that would make it so.
func huge(number []byte) bool {
	_, exponent, _ := bytes.Cut(bytes.ToLower(number), []byte("e"))
	return len(number) > 64 || len(exponent) > 3
}
