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
	"math/big"
)

// SumUsage adds the usage of several turns, member by member and with those
// that are objects added likewise. Members that are no numbers are those of
// the last turn. A usage of one turn stays as it came; nil is none.
func SumUsage(total, turn []byte) []byte {
	switch {
	case len(turn) == 0:
		return total
	case len(total) == 0:
		return append([]byte(nil), turn...)
	}
	var a, b text
	a.reset(total)
	b.reset(turn)
	sum, ok := a.members(nil, 0)
	more, ok2 := b.members(nil, 0)
	if !ok || !ok2 {
		return total
	}
	var out parts
	for _, m := range sum {
		out.merge(m.name.of(total), m.value.of(total))
	}
	for _, m := range more {
		name, value := m.name.of(turn), m.value.of(turn)
		have := out.get(string(name[1 : len(name)-1]))
		switch {
		case have == nil:
			out.merge(name, value)
		case have.kind == '{' && value[0] == '{':
			have.set(SumUsage(have.value, value))
		case isNumber(have.kind) && isNumber(value[0]):
			have.set(addNumbers(have.value, value))
		case !isNull(value):
			have.set(value)
		}
	}
	return out.object()
}

func isNumber(c byte) bool { return c == '-' || '0' <= c && c <= '9' }

// addNumbers adds two JSON numbers. Those that are no integers, such as costs,
// are added as decimals, so that 0.1 and 0.2 make 0.3.
func addNumbers(a, b []byte) []byte {
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
