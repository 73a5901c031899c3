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
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// has returns which of the keys have values.
func (t *recent[K, V]) has(keys ...K) (list []K) {
	for _, key := range keys {
		if _, ok := t.get(key); ok {
			list = append(list, key)
		}
	}
	return list
}

func TestRecentForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecent[int, string](time.Minute, 10, 100)
		for round := range 2 { // the second one after it was empty
			r.add(1, "one", 10)
			time.Sleep(30 * time.Second)
			r.add(2, "two", 20)
			r.add(3, "three", 30)
			time.Sleep(29 * time.Second)
			r.add(2, "again", 5)
			time.Sleep(2 * time.Second)
			if got := r.has(1, 2, 3); !slices.Equal(got, []int{2, 3}) || r.kept() != 35 {
				t.Errorf("round %d: after 61s there are %v, %d bytes", round, got, r.kept())
			}
			time.Sleep(30 * time.Second)
			if got := r.has(1, 2, 3); !slices.Equal(got, []int{2}) || r.kept() != 5 {
				t.Errorf("round %d: after 91s there are %v, %d bytes", round, got, r.kept())
			}
			time.Sleep(30 * time.Second)
			if r.kept() != 0 || !r.empty() {
				t.Errorf("round %d: after 121s there are %d bytes in %d values", round, r.kept(), r.entries.Len())
			}
		}
	})
}

func TestRecentIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		sizes []int // of the values 0, 1, 2 ...
		want  []int
		bytes int
	}{
		"in number":            {[]int{1, 1, 1, 1, 1}, []int{2, 3, 4}, 3},
		"in bytes":             {[]int{40, 40, 40}, []int{1, 2}, 80},
		"exactly":              {[]int{50, 50}, []int{0, 1}, 100},
		"one makes much room":  {[]int{10, 10, 90}, []int{1, 2}, 100},
		"too large on its own": {[]int{10, 101, 10}, []int{0, 2}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRecent[int, string](time.Minute, 3, 100)
				for key, size := range c.sizes {
					r.add(key, "", size)
				}
				if got := r.has(0, 1, 2, 3, 4); !slices.Equal(got, c.want) || r.kept() != c.bytes {
					t.Errorf("there are %v with %d bytes, want %v with %d", got, r.kept(), c.want, c.bytes)
				}
			})
		})
	}
}
