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

// Package driver holds the Python program that runs inside an embedded
// sandbox: a fork server of kernels that run notebook cells (see the package
// pydriver beside this file). It needs Python 3.9 or newer on Linux, and of it
// the standard library only.
//
// # Start
//
// Whoever starts an interpreter makes the modules of [Files] importable as the
// package pydriver, as source or as bytecode, from a directory or from memory,
// and calls pydriver.supervisor.main(), which does not return. Parts are
// imported when they are first needed, long after the start.
//
// # Protocol
//
// The process reads commands on descriptor 0 and writes events on descriptor
// 1, one JSON object a line; descriptor 2 is for what Python itself has to say.
// The first command is
//
//	{"op":"start","preload":["numpy"],"home":"/home/user"}
//	  -> {"type":"ready","python":"3.11.2"}  ("preload_errors": {module: message})
//
// preload names modules that are imported once and shared by all kernels. Then
//
//	{"op":"create","context":"C","language":"python"|"bash","cwd":"/home/user"}
//	  -> {"type":"created","context":"C"} | {"type":"refused","context":"C","message":"..."}
//	{"op":"execute","context":"C","run":"R","code":"...","language":"python"|"bash","env_vars":{"A":"b"},"sandbox_env_vars":{"C":"d"}}
//	  -> events with "context", "run" and "type" in front and in this order: number_of_executions,
//	     stdout, stderr, result and error as in the E2B protocol, and last exactly one end_of_execution;
//	     env_vars hold for this run, sandbox_env_vars are set when the interpreter first hears of them
//	{"op":"interrupt","context":"C","run":"R"}  KeyboardInterrupt; the state is kept
//	{"op":"kill","context":"C"}      ends the kernel; a run in progress ends with the error
//	                                 ContextRestarting, and a new kernel serves the context
//	{"op":"restart","context":"C"}   -> {"type":"restarted","context":"C"}; like kill, in the home directory
//	{"op":"remove","context":"C"}    -> {"type":"removed","context":"C"}
//
// A kernel that dies during a run ends the run with ContextRestarting. When it
// dies between runs, the next run is not executed but answered so: its code was
// written for a state that is gone. The end of descriptor 0 ends everything.
//
// What code writes to the descriptors of its kernel can change what that kernel
// says, never what another says. Lines are bounded (16 MiB), and so is what is
// kept for a reader that does not read: the kernels wait for it.
package driver

import "embed"

// Files are the modules of the package pydriver.
//
//go:embed pydriver/*.py
var Files embed.FS
