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
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkColdCreate is a new sandbox to its first result. The processor time
// inside is reported too: it is the same on a machine that is busy otherwise.
func BenchmarkColdCreate(b *testing.B) {
	s := newServer(b, Config{})
	c := newClient(b, s)
	var cpu time.Duration
	for b.Loop() {
		sb := c.create(nil)
		c.want(sb, "1+1", "2")
		b.StopTimer()
		cpu += processorTime(b, s.find(sb.ID))
		c.remove(sb)
		b.StartTimer()
	}
	b.ReportMetric(float64(cpu.Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// processorTime adds up what a sandbox's processes have used.
func processorTime(b *testing.B, sb *sandbox) time.Duration {
	bwrap := sb.process.cmd.Process.Pid
	var sum time.Duration
	for _, pid := range append(descendants(bwrap), bwrap) {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/schedstat")
		if err != nil {
			b.Fatal(err)
		}
		nanoseconds, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(nanoseconds)
	}
	return sum
}

// BenchmarkWarmCreate is the same when sandboxes are kept ready.
func BenchmarkWarmCreate(b *testing.B) {
	s := newServer(b, Config{Warm: 1})
	c := newClient(b, s)
	for b.Loop() {
		b.StopTimer()
		awaitWarm(b, s, 1)
		b.StartTimer()
		sb := c.create(nil)
		c.want(sb, "1+1", "2")
		b.StopTimer()
		c.remove(sb)
		b.StartTimer()
	}
}

// BenchmarkExecute is x+1 in a sandbox that is there.
func BenchmarkExecute(b *testing.B) {
	c := newClient(b, newServer(b, Config{}))
	sb := c.create(nil)
	c.want(sb, "x = 1; x", "1")
	for b.Loop() {
		c.want(sb, "x+1", "2")
	}
}

// BenchmarkIdleMemory reports what a sandbox that waits holds for itself alone.
func BenchmarkIdleMemory(b *testing.B) {
	for _, preload := range [][]string{nil, {"numpy", "pandas", "matplotlib.pyplot"}} {
		name := "plain"
		if preload != nil {
			name = "preloaded"
		}
		b.Run(name, func(b *testing.B) {
			s := newServer(b, Config{Preload: preload})
			c := newClient(b, s)
			for b.Loop() {
				sb := c.create(nil)
				c.want(sb, "1+1", "2")
				box := s.find(sb.ID)
				var pss, rss int64
				for _, pid := range append(descendants(box.process.cmd.Process.Pid), box.process.cmd.Process.Pid) {
					p, r := proportional(b, pid)
					pss, rss = pss+p, rss+r
				}
				b.ReportMetric(float64(pss)/1024, "MiB-pss")
				b.ReportMetric(float64(rss)/1024, "MiB-rss")
				c.remove(sb)
			}
		})
	}
}

// proportional returns the kilobytes of a process, shared pages divided among
// those who share them, and not divided.
func proportional(b *testing.B, pid int) (pss, rss int64) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "Pss:":
			pss = n
		case "Rss:":
			rss = n
		}
	}
	return pss, rss
}
