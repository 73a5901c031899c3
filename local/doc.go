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

// Package local runs model-written Python on this machine, and speaks the
// protocol of E2B: control plane and data plane are one http.Handler, reached in
// process through Transport or served on a port with Serve.
//
// # What holds the code
//
// Each sandbox is a bubblewrap of its own: user, mount, process, network, IPC and
// UTS namespaces, no capabilities, a file system of read-only system directories
// and three tmpfs of bounded size, an environment and an /etc of its own, and an
// allow list of system calls (seccomp_linux.go). When the gateway is root each
// sandbox has a user id of a range that owns nothing; else it has the gateway's,
// alone in its namespace. Limits on address space, processes, open files and file
// size are set before the driver starts (boot.py); the memory, files and descriptors
// of all processes together are watched (watchdog.go). What the kernel keeps for
// them beyond that is not counted: when the machine runs out of memory, it ends
// sandboxes before the gateway. Nothing is written to the host's disk. The
// kernel is shared with the host: its bugs, and side channels, are not held.
//
// # Life
//
// bubblewrap dies with the gateway, however that ends, and process 1 of a sandbox
// with bubblewrap, and everything inside with process 1. A sandbox whose driver
// falls silent is ended. A kernel that dies costs its context's variables, and
// neither files nor other contexts.
//
// # The driver
//
// Inside runs the driver (package driver, which documents what it is told and what
// it tells), which forks one kernel for each context.
package local
