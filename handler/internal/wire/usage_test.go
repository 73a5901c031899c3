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

import "testing"

func TestUsageIsSummedOverTurns(t *testing.T) {
	for _, c := range []struct{ name, total, turn, want string }{
		{"nothing yet", "", `{"total_tokens":1, "x":1.0}`, `{"total_tokens":1, "x":1.0}`},
		{"a turn without", `{"total_tokens":1}`, "", `{"total_tokens":1}`},
		{"a turn with an empty one", `{"total_tokens":1}`, `{}`, `{"total_tokens":1}`},
		{"what is no object", `{"total_tokens":1}`, `7`, `{"total_tokens":1}`},
		{"after what is no object", `[1]`, `{"total_tokens":1}`, `{"total_tokens":1}`},
		{"numbers", `{"prompt_tokens":10,"total_tokens":15}`, `{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23}`, `{"prompt_tokens":30,"total_tokens":38,"completion_tokens":3}`},
		{"nested", `{"d":{"cached_tokens":1,"x":{"y":1}}}`, `{"d":{"cached_tokens":2,"x":{"y":2},"n":null}}`, `{"d":{"cached_tokens":3,"x":{"y":3},"n":null}}`},
		{"null and numbers", `{"a":null,"b":1}`, `{"a":2,"b":null}`, `{"a":2,"b":1}`},
		{"costs", `{"cost":0.1,"e":1e-7}`, `{"cost":0.2,"e":2E-7}`, `{"cost":0.3,"e":0.0000003}`},
		{"numbers beyond 64 bits", `{"n":18446744073709551615}`, `{"n":1}`, `{"n":18446744073709551616}`},
		{"text", `{"tier":"a"}`, `{"tier":"b"}`, `{"tier":"b"}`},
		{"numbers as text", `{"n":"1"}`, `{"n":"2"}`, `{"n":"2"}`},
		{"exponents without end", `{"n":1}`, `{"n":1e999999999}`, `{"n":1e999999999}`},
		{"exponents that would be slow", `{"n":1}`, `{"n":1E-9000000}`, `{"n":1E-9000000}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(sumOf(c.total, c.turn)); got != c.want {
				t.Errorf("sum %s, want %s", got, c.want)
			}
		})
	}
}

// sumOf returns the sum of the usage of turns.
func sumOf(turns ...string) []byte {
	var u Usage
	for _, turn := range turns {
		u.Add([]byte(turn))
	}
	return u.JSON()
}

func TestOnlyCountsAreNumbersOfAUsage(t *testing.T) {
	for value, want := range map[string]float64{`12`: 12, `1.5`: 1.5, `-3`: 0, `"7"`: 0, `null`: 0, `1e999`: 0, `{}`: 0, `7,"n":8`: 8} {
		var u Usage
		u.Add([]byte(`{"n":` + value + `}`))
		if got := u.Number("n"); got != want {
			t.Errorf("%s is %v, want %v", value, got, want)
		}
	}
	for _, text := range []string{`"Infinity"`, `"0x1p4"`, `"12"`, `"nan"`} {
		var u Usage
		u.Add([]byte(`{"n":` + text + `}`))
		u.Add([]byte(`{"m":1}`))
		if got := u.Number("n"); got != 0 {
			t.Errorf("%s is %v after two turns", text, got)
		}
	}
	var u Usage
	if u.Number("n") != 0 {
		t.Error("a sum of nothing has numbers")
	}
	u.Add([]byte(`{"n":1}`))
	u.Add([]byte(`{"n":2,"m":-1}`))
	if u.Number("n") != 3 || u.Number("m") != 0 {
		t.Errorf("n is %v, m is %v in %s", u.Number("n"), u.Number("m"), u.JSON())
	}
}

func TestUsageOfTooManyMembersIsTheLastOne(t *testing.T) {
	var u Usage
	last := `{"total_tokens":2,"x":{` + numbered(maxParts, `"m%d":1`) + `}}`
	u.Add([]byte(`{"total_tokens":1,"x":{` + numbered(maxParts, `"n%d":1`) + `}}`))
	for range 2 {
		u.Add([]byte(last))
		if got := string(u.JSON()); got != last || u.Number("total_tokens") != 2 {
			t.Errorf("usage %.100s, %v in total", got, u.Number("total_tokens"))
		}
	}
}
