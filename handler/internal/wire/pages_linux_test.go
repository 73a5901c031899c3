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
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

func TestMemoryOfLargeBodiesPrefersHugePages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); errors.Is(err, fs.ErrNotExist) {
		t.Log("this kernel has none: the advice is only made")
	} else if block := (&freeList{}).take(3 * hugePage); !slices.Contains(flagsOf(t, block), "hg") {
		t.Errorf("the pages are not advised, but %v", flagsOf(t, block))
	}
}

// flagsOf returns the flags that the kernel has for the middle of a block.
func flagsOf(t *testing.T, block []byte) []string {
	t.Helper()
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	middle := uintptr(unsafe.Pointer(&block[len(block)/2]))
	inside := false
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uintptr
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x ", &from, &to); n == 2 {
			inside = from <= middle && middle < to
		} else if flags, ok := strings.CutPrefix(lines.Text(), "VmFlags:"); ok && inside {
			return strings.Fields(flags)
		}
	}
	t.Fatal("the block is not in /proc/self/smaps")
	return nil
}
