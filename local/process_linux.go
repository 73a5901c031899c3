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
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// process is a sandbox as the gateway holds it: bubblewrap, and in it process 1
// of the sandbox, whose end is the end of everything inside.
type process struct {
	commands *os.File // to the driver; deadlines work
	events   *os.File // from the driver
	done     chan struct{}

	cmd       *exec.Cmd
	initMu    sync.Mutex
	init      *os.File // pidfd of the sandbox's process 1
	released  bool     // init is closed
	initPID   int
	memory    int64 // bytes, the limit
	complaint *tail
	uid       int // 0: the gateway's own
}

// openInit waits for bubblewrap to tell its child, the sandbox's process 1, and
// opens a descriptor of that process, which never means another one.
func openInit(info *os.File) (init *os.File, pid int, err error) {
	if err := info.SetReadDeadline(time.Now().Add(infoTimeout)); err != nil {
		return nil, 0, err
	}
	var told struct {
		Child int `json:"child-pid"`
	}
	if err := json.NewDecoder(info).Decode(&told); err != nil {
		return nil, 0, fmt.Errorf("bwrap told nothing of its sandbox: %w", err)
	}
	fd, err := unix.PidfdOpen(told.Child, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("opening process %d: %w", told.Child, err)
	}
	return os.NewFile(uintptr(fd), "pidfd"), told.Child, nil
}

// goFirst has the kernel end the sandbox before the gateway when the machine runs
// out of memory. What starts in it later inherits that.
func (p *process) goFirst() error {
	file, err := os.OpenFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.initPID), os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("having the sandbox end first when memory is short: %w", err)
	}
	_, err = file.WriteString("1000")
	return errors.Join(err, file.Close())
}

// wait reaps bubblewrap and closes done.
func (p *process) wait() {
	_ = p.cmd.Wait() // how it ended says nothing: it is always killed
	releaseUID(p.uid)
	close(p.done)
}

// kill ends everything inside and waits until bubblewrap has been reaped. It ends
// process 1 of the sandbox, not bubblewrap: that one would leave process 1 to the
// host's init, which a gateway in a container may be itself. It may be called
// more than once, also at the same time.
func (p *process) kill() {
	if p.init != nil {
		p.signalEnd()
		select {
		case <-p.done:
			return
		case <-time.After(reapTimeout):
		}
	}
	_ = p.cmd.Process.Kill() // fails only when it has ended
	<-p.done
}

// signalEnd makes everything inside end, and does not wait for it.
func (p *process) signalEnd() {
	p.initMu.Lock()
	defer p.initMu.Unlock()
	if !p.released {
		// A process that has ended already is all that can go wrong.
		_ = unix.PidfdSendSignal(int(p.init.Fd()), unix.SIGKILL, nil, 0)
	}
}

// release closes the gateway's ends. The process must have ended.
func (p *process) release() {
	p.commands.Close()
	p.events.Close()
	p.initMu.Lock()
	defer p.initMu.Unlock()
	p.released = true
	if p.init != nil {
		p.init.Close()
	}
}

// why returns what bubblewrap or the driver complained about. The process must
// have ended.
func (p *process) why() string { return strings.TrimSpace(string(p.complaint.buf)) }

// startError adds to err what is known of a process that has ended, and closes it.
func (p *process) startError(err error) error {
	p.release()
	if why := p.why(); why != "" {
		return &startError{complaint: why, err: err}
	}
	return err
}
