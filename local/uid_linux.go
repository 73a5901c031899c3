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
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
)

// A gateway that is root gives each sandbox a user id of its own, of a range that
// distributions leave free: the kernel counts processes, pipes and pending
// signals by user, and no file belongs to that one. The second range is for
// containers that have 65,536 ids and no more.
var uidRanges = [][2]int{{200000, 265535}, {40000, 60000}}

// uids are those in use by this process, whatever its number of servers. Another
// gateway of the machine draws from the same range at random: two sandboxes that
// meet share a count of processes, and nothing else.
var uids = struct {
	mu   sync.Mutex
	used map[int]bool
}{used: map[int]bool{}}

// takeUID returns an id that is free.
func takeUID() (int, error) {
	mapping, err := os.Open("/proc/self/uid_map")
	if err != nil {
		return 0, fmt.Errorf("which user ids there are: %w", err)
	}
	defer mapping.Close()
	first, last, err := uidRange(mapping)
	if err != nil {
		return 0, err
	}
	uids.mu.Lock()
	defer uids.mu.Unlock()
	for range 1000 {
		uid := first + rand.IntN(last-first+1) //nolint:gosec // a number to be apart, no secret
		if !uids.used[uid] {
			uids.used[uid] = true
			return uid, nil
		}
	}
	return 0, fmt.Errorf("no free user id in %d-%d", first, last)
}

// releaseUID gives an id back; 0 is none.
func releaseUID(uid int) {
	uids.mu.Lock()
	defer uids.mu.Unlock()
	delete(uids.used, uid)
}

// uidRange returns the first range that lies in the mapping of /proc/self/uid_map.
func uidRange(mapping io.Reader) (first, last int, err error) {
	var mapped [][2]int
	for lines := bufio.NewScanner(mapping); lines.Scan(); {
		var inside, outside, count int
		if _, err := fmt.Sscan(lines.Text(), &inside, &outside, &count); err == nil {
			mapped = append(mapped, [2]int{inside, inside + count - 1})
		}
	}
	for _, r := range uidRanges {
		for _, m := range mapped {
			if m[0] <= r[0] && r[1] <= m[1] {
				return r[0], r[1], nil
			}
		}
	}
	return 0, 0, errors.New("root has no user ids 40000-60000 to give to sandboxes (/proc/self/uid_map): " +
		"run the gateway as an ordinary user, or give its container 65,536 ids")
}

func credential(uid int) *syscall.Credential {
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
}
