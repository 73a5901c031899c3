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

import "syscall"

// preferHugePages asks for pages of 2 MB below a block that has not been used.
// A large body is written once and read twice, and with pages of 4 KB the
// processor looks up each of them anew. It is only advice: a kernel that has no
// such pages refuses it, and nothing is different then.
func preferHugePages(block []byte) {
	_ = syscall.Madvise(block[:cap(block)], syscall.MADV_HUGEPAGE)
}
