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
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// sweep ends what a gateway has left that was killed while it started a
// sandbox. bubblewrap's child asks to die with its parent only after it has
// waited for a word of it; when the parent is killed before that, the child
// waits for ever. It has run none of the sandbox's code by then. What belongs to
// gateways that live is left alone: there the parent is bubblewrap.
func (*engine) sweep(logger *zap.Logger) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return // the pattern is a good one
	}
	ended := 0
	for _, dir := range processes {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && isOrphan(pid) && unix.Kill(pid, unix.SIGKILL) == nil {
			ended++
		}
	}
	if ended > 0 {
		logger.Info("ended sandboxes that never started, of a gateway that was killed", zap.Int("processes", ended))
	}
}

// isOrphan says whether a process is bubblewrap's child, of a sandbox of ours,
// before it has become the program of the sandbox, and without its parent.
func isOrphan(pid int) bool {
	if !isStarter(pid) {
		return false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false // it has ended
	}
	var parent int
	var first bool // process 1 of a namespace
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.Fields(value)
		switch name {
		case "PPid":
			if parent, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return false
			}
		case "NSpid":
			first = len(fields) > 1 && fields[len(fields)-1] == "1"
		}
	}
	return first && !isStarter(parent)
}

// isStarter says whether a process is bubblewrap with the command line of a
// sandbox of ours.
func isStarter(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	boot := fmt.Appendf(nil, bootCommand, fdPayload)
	return err == nil && bytes.HasPrefix(line, []byte("bwrap\x00--args\x00")) && bytes.Contains(line, boot)
}
