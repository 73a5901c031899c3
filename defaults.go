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

package codeinterpreter

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// What options mean that are not given; those of E2B's protocol
// are in e2b, those of a local sandbox in local.
const (
	defaultOffer          = offerRequested
	defaultToolName       = "run_python"
	defaultMaxRounds      = 16
	defaultExecTimeout    = 60 * time.Second
	defaultSandboxTimeout = 30 * time.Second
	defaultQueueTimeout   = 60 * time.Second
	defaultRequestTimeout = 10 * time.Minute
	defaultMaxOutput      = 32 << 10 // characters
	defaultMaxBody        = 64 << 20
	defaultMaxImages      = 8 << 20
	defaultKeepalive      = 10 * time.Second
	defaultShow           = true

	defaultIdle           = 15 * time.Minute
	defaultMaxPerIdentity = 10
	defaultMaxRemote      = 1000
	defaultOnExit         = onExitKeep
	defaultOnIdle         = onIdleDelete
	defaultKeep           = 7 * 24 * time.Hour

	defaultInternet = true
	defaultWarm     = 1
)

// The environment variables of E2B's own SDKs, and one for its sandbox_url.
const (
	envAPIKey     = "E2B_API_KEY" //nolint:gosec // the name of one, no credential
	envAPIURL     = "E2B_API_URL"
	envDomain     = "E2B_DOMAIN"
	envSandboxURL = "E2B_SANDBOX_URL"
)

// An idle local sandbox and what its code usually needs fit into localShare of
// memory; more than maxLocal of them want a machine that somebody has sized.
const (
	localShare = 128 << 20
	maxLocal   = 200
)

// or returns the value that is set, or its default.
func or[T comparable](value, fallback T) T {
	var unset T
	if value == unset {
		return fallback
	}
	return value
}

// orSet is or for options whose zero value is not their default.
func orSet[T any](value *T, fallback T) T {
	if value == nil {
		return fallback
	}
	return *value
}

func orDuration(value caddy.Duration, fallback time.Duration) time.Duration {
	return or(time.Duration(value), fallback)
}

// fromEnv reads a default that may come with the line break of a file.
func fromEnv(name string) string { return strings.TrimSpace(os.Getenv(name)) }

// defaultMaxLocal is how many local sandboxes this machine has room for.
func defaultMaxLocal(memory int64) int {
	if memory <= 0 {
		return maxLocal
	}
	return int(min(max(memory/localShare, 1), maxLocal))
}

// machineMemory is how much memory the process may use, in bytes: the
// machine's, or less where a container has a limit. It is 0 where the system
// does not say, which no system with local sandboxes does.
func machineMemory() int64 {
	memory := parseMemTotal(readFile("/proc/meminfo"))
	if limit, err := strconv.ParseInt(readFile("/sys/fs/cgroup/memory.max"), 10, 64); err == nil && limit > 0 {
		memory = min(memory, limit)
	}
	return memory
}

// parseMemTotal finds the line "MemTotal: <n> kB" of /proc/meminfo.
func parseMemTotal(meminfo string) int64 {
	for line := range strings.Lines(meminfo) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "MemTotal:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// readFile returns a small file of the system, empty where there is none.
func readFile(name string) string {
	content, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}
