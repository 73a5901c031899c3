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

package local

import (
	"strings"
	"testing"
)

func TestUserRangeLiesInTheMapping(t *testing.T) {
	for _, tt := range []struct {
		name, mapping string
		first, last   int
	}{
		{"a machine", "         0          0 4294967295\n", 200000, 265535},
		{"a rootless container", "         0       1000          1\n         1     100000      65536\n", 40000, 60000},
		{"a large container", "0 100000 1000000\n", 200000, 265535},
		{"one user", "0 1000 1\n", 0, 0},
		{"nonsense", "x y z\n", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			first, last, err := uidRange(strings.NewReader(tt.mapping))
			if first != tt.first || last != tt.last || (err == nil) != (tt.first != 0) {
				t.Errorf("got %d-%d, %v; want %d-%d", first, last, err, tt.first, tt.last)
			}
		})
	}
}

func TestUsersAreNeverGivenTwice(t *testing.T) {
	seen := map[int]bool{}
	for range 2000 {
		uid, err := takeUID()
		if err != nil {
			t.Fatal(err)
		}
		defer releaseUID(uid)
		if seen[uid] {
			t.Fatalf("user %d was given twice", uid)
		}
		seen[uid] = true
	}
}
