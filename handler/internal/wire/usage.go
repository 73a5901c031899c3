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

// Usage is the sum of the usage of several turns, member by member and with
// those that are objects added likewise. Members that are no numbers are those
// of the last turn, as all are when there are too many. The zero value is the
// sum of none.
type Usage struct {
	sum   part
	tally tally // of it
}

// Add adds the usage of a turn. What is no object, or has nothing in it, says
// nothing.
func (u *Usage) Add(turn []byte) {
	switch {
	case !isObject(string(turn)) || isEmpty(turn):
	case u.sum.kind == 0:
		u.sum.set(turn)
	default:
		if u.sum.addUp(turn, maxDepth, &u.tally); u.tally.full() {
			u.sum.set(turn)
		}
	}
}

// Number returns a number of the sum, 0 when there is none of that name, or
// none that can be counted.
func (u *Usage) Number(name string) float64 {
	var value []byte
	if p := u.sum.members.get(name); p != nil {
		value = p.appendValue(nil)
	}
	for quoted, v := range membersOf(u.sum.value) {
		if u.sum.members == nil && named(quoted, name) {
			value = v
		}
	}
	if len(value) == 0 || !isNumber(value[0]) {
		return 0
	}
	n, err := strconv.ParseFloat(string(value), 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// JSON returns the sum, nil when there is none. That of one turn is as it came.
func (u *Usage) JSON() []byte {
	if u.sum.kind == 0 {
		return nil
	}
	return u.sum.appendValue(nil)
}

// addUp adds an object to one. Deeper than depth, later values replace others.
func (f *part) addUp(object []byte, depth int, n *tally) {
	f.open(n)
	for name, value := range membersOf(object) {
		have := f.members.member(name, n)
		switch {
		case have.kind == '{' && value[0] == '{' && depth > 0:
			have.addUp(value, depth-1, n)
		case isNumber(have.kind) && isNumber(value[0]):
			var sum [24]byte
			have.set(addNumbers(sum[:0], have.value, value))
		case have.kind == 0 || !isNull(value):
			have.set(value)
		}
	}
}

func isNumber(c byte) bool { return c == '-' || '0' <= c && c <= '9' }

// addNumbers appends the sum of two JSON numbers to dst. Those that are no
// integers, such as costs, are added as decimals, so that 0.1 and 0.2 make 0.3.
func addNumbers(dst, a, b []byte) []byte {
	if x, ok := count(a); ok {
		if y, ok := count(b); ok {
			return strconv.AppendInt(dst, x+y, 10)
		}
	}
	if huge(a) || huge(b) {
		return append(dst, b...)
	}
	x, ok := new(big.Rat).SetString(string(a))
	y, ok2 := new(big.Rat).SetString(string(b))
	if !ok || !ok2 {
		return append(dst, b...)
	}
	x.Add(x, y)
	if x.IsInt() {
		return x.Num().Append(dst, 10)
	}
	digits, _ := x.FloatPrec()
	return append(dst, x.FloatString(min(digits, 20))...)
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
