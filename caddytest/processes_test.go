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

package caddytest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is one below this test.
type process struct {
	pid, parent int
	name        string
}

// processes returns the processes of a name below this one, the oldest first:
// "bwrap" for sandboxes, of which each has two, "python3" for what is in them.
func processes(name string) []process {
	all := map[int]process{}
	for _, p := range running() {
		all[p.pid] = p
	}
	var found []process
	for _, p := range running() {
		if strings.HasPrefix(p.name, name) && below(all, p, os.Getpid()) {
			found = append(found, p)
		}
	}
	return found
}

func below(all map[int]process, p process, ancestor int) bool {
	for range 100 {
		if p.parent == ancestor {
			return true
		}
		next, ok := all[p.parent]
		if !ok {
			return false
		}
		p = next
	}
	return false
}

func running() []process {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		panic(err) // the pattern is good
	}
	var list []process
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		// "pid (name) state parent ...", and the name may contain anything.
		open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
		fields := strings.Fields(string(stat[end+1:]))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(stat[:open])))
		parent, _ := strconv.Atoi(fields[1])
		if fields[0] != "Z" {
			list = append(list, process{pid, parent, string(stat[open+1 : end])})
		}
	}
	return list
}
