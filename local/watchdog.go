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
	"fmt"
	"time"

	"go.uber.org/zap"
)

const (
	// watchInterval is how often the memory of sandboxes that run code is added up.
	// What a process can take in between is what the kernel can clear.
	watchInterval = 100 * time.Millisecond
	// idleLooks is how many intervals pass between two looks at one that runs none.
	idleLooks = 10
	// maxLooksOver is how many looks in a row a sandbox may be over its memory
	// although its largest process is killed at each.
	maxLooksOver = 5
	// maxFiles bounds the files of a sandbox: each takes memory of the kernel's that
	// no size of a file system accounts for.
	maxFiles = 200_000
	// maxDescriptors bounds the open files of all processes of a sandbox: what the
	// kernel keeps for pipes, locks and what is watched is in no process's memory.
	maxDescriptors = 4096
	// maxTerminals bounds pseudo terminals, which the whole system has 4096 of.
	maxTerminals = 64
)

// usage is what a sandbox holds.
type usage struct {
	memory  int64 // bytes
	largest int   // the process that holds most, of those that run foreign code; 0: none
	files   int64

	descriptors, terminals int
}

// watchdog keeps sandboxes within their memory. Address space is limited for each
// process by the kernel; this is for all of them together.
func (s *Server) watchdog() {
	ticks := time.NewTicker(watchInterval)
	defer ticks.Stop()
	for look := 0; ; look++ {
		select {
		case <-s.ctx.Done():
			return
		case <-ticks.C:
		}
		for _, sb := range s.all() {
			if sb.running.Load() > 0 || look%idleLooks == 0 {
				s.inspectUsage(sb)
			}
		}
	}
}

// inspectUsage looks at one sandbox. Where it holds too much its largest process
// is killed, which costs one context its variables; when that does not help, all
// of it.
func (s *Server) inspectUsage(sb *sandbox) {
	used := sb.process.usage()
	switch {
	case used.files > maxFiles:
		s.log.Info("a sandbox with too many files is ended", zap.String("sandbox", sb.id), zap.Int64("files", used.files))
		sb.end()
	case used.descriptors > maxDescriptors || used.terminals > maxTerminals:
		s.log.Info("a sandbox with too many open files is ended", zap.String("sandbox", sb.id),
			zap.Int("descriptors", used.descriptors), zap.Int("terminals", used.terminals))
		sb.end()
	case used.memory <= s.cfg.Memory:
		sb.looksOver = 0
	case sb.looksOver >= maxLooksOver || used.largest == 0:
		s.log.Info("a sandbox over its memory is ended", zap.String("sandbox", sb.id), zap.Int64("bytes", used.memory))
		sb.end()
	default:
		sb.looksOver++
		sb.setReason(fmt.Sprintf("it used more than %d MiB of memory", s.cfg.Memory>>20))
		sb.process.killInside(used.largest)
	}
}

// all returns every sandbox, handed out or not.
func (s *Server) all() []*sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*sandbox, 0, len(s.sandboxes)+len(s.warm))
	for _, sb := range s.sandboxes {
		out = append(out, sb)
	}
	for sb := range s.warm {
		out = append(out, sb)
	}
	return out
}

// setReason keeps why a process of the sandbox is killed, for the run that loses it.
func (sb *sandbox) setReason(reason string) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	sb.reason = reason
}
