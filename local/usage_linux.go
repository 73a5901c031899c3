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
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// usage adds up what the sandbox's processes hold. A process that ends meanwhile
// counts as nothing.
func (p *process) usage() usage {
	var u usage
	inside := descendants(p.initPID)
	var most, mapped int64
	for i, pid := range inside {
		m := memoryOf(pid)
		u.memory += m.private
		mapped += m.mapped
		// The first is the driver's, which runs no foreign code.
		if i > 0 && m.private+m.mapped > most {
			most, u.largest = m.private+m.mapped, pid
		}
	}
	// These sums are quick and say too much and too little: after a fork the
	// same page counts twice, and memory shared without a file belongs to no
	// process, which may have touched it and left it out of its resident set. The
	// exact numbers are slow, and looked for where they could matter.
	if u.memory+mapped > p.memory {
		u.memory = sharedMemory(inside)
		for _, pid := range inside {
			u.memory += proportionalMemory(pid)
		}
	}
	u.memory += p.socketMemory()
	u.files = p.files()
	u.descriptors = descriptors(inside)
	u.terminals = p.terminals()
	return u
}

// socketSize is what a socket holds at most: its size is the kernel's default,
// which the filter lets nobody change.
var socketSize = sync.OnceValue(func() int64 {
	const usual = 208 << 10
	text, err := os.ReadFile("/proc/sys/net/core/wmem_default")
	if err != nil {
		return usual // a container need not have the file
	}
	size, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return usual
	}
	return size
})

// socketMemory bounds what lies in the sandbox's sockets. It belongs to no process.
func (p *process) socketMemory() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/unix", p.initPID))
	if err != nil {
		return 0 // the sandbox has ended
	}
	sockets := max(0, bytes.Count(text, []byte("\n"))-1) // the first line is a heading
	return int64(sockets) * socketSize()
}

// descendants returns the processes below one, parents first.
func descendants(pid int) []int {
	var all []int
	for next := children(pid); len(next) > 0; {
		all = append(all, next...)
		var below []int
		for _, pid := range next {
			below = append(below, children(pid)...)
		}
		next = below
	}
	return all
}

func children(pid int) []int {
	dir := fmt.Sprintf("/proc/%d/task/", pid)
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil // it has ended
	}
	var all []int
	for _, thread := range threads {
		text, err := os.ReadFile(dir + thread.Name() + "/children")
		if err != nil {
			continue
		}
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// held is what a process holds, in bytes.
type held struct {
	private int64 // resident and its own
	mapped  int64 // address space that is not private: files, and what is shared
}

func memoryOf(pid int) held {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return held{}
	}
	var size, resident, shared, code, lib, data int64
	if _, err := fmt.Sscan(string(text), &size, &resident, &shared, &code, &lib, &data); err != nil {
		return held{}
	}
	page := int64(os.Getpagesize())
	return held{private: (resident - shared) * page, mapped: (size - data) * page}
}

// proportionalMemory returns the private memory of a process, pages that it shares
// with its forks divided among them.
func proportionalMemory(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return memoryOf(pid).private // the next best, or nothing when it has ended
	}
	for line := range strings.Lines(string(text)) {
		var kilobytes int64
		if _, err := fmt.Sscanf(line, "Pss_Anon: %d kB", &kilobytes); err == nil {
			return kilobytes << 10
		}
	}
	return memoryOf(pid).private // a kernel before 5.9
}

// sharedMemory adds up the shared anonymous mappings of processes, each once. The
// kernel shows them as deleted files called /dev/zero.
func sharedMemory(pids []int) int64 {
	seen := map[string]int64{}
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) < 6 || fields[5] != "/dev/zero" {
				continue
			}
			var from, to int64
			if _, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to); err != nil {
				continue
			}
			inode := fields[4]
			seen[inode] = max(seen[inode], to-from)
		}
	}
	var sum int64
	for _, size := range seen {
		sum += size
	}
	return sum
}

// files counts the files of the file systems that a sandbox can write to.
func (p *process) files() int64 {
	var sum int64
	for _, path := range []string{sandboxHome, "/tmp", "/dev/shm"} {
		var st unix.Statfs_t
		if err := unix.Statfs(fmt.Sprintf("/proc/%d/root%s", p.initPID, path), &st); err == nil {
			sum += int64(st.Files) - int64(st.Ffree)
		}
	}
	return sum
}

// descriptors adds up the open files of processes.
func descriptors(pids []int) int {
	var sum int
	for _, pid := range pids {
		sum += countEntries(fmt.Sprintf("/proc/%d/fd", pid))
	}
	return sum
}

// terminals counts the pseudo terminals of a sandbox. The system has few.
func (p *process) terminals() int {
	return countEntries(fmt.Sprintf("/proc/%d/root/dev/pts", p.initPID))
}

// countEntries counts what a directory contains; 0 when it is gone.
func countEntries(path string) int {
	dir, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0
	}
	return len(names)
}

// killInside kills a process of the sandbox. Its number may have passed to another
// process meanwhile, so it has to be of the sandbox's namespace when it is held.
func (p *process) killInside(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has ended
	}
	defer unix.Close(fd)
	ours, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", p.initPID))
	if err != nil {
		return
	}
	if its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid)); err == nil && its == ours {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // it has ended: fine
	}
}
