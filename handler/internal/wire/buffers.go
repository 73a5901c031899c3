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
	"slices"
	"sync"
)

// What is kept of the memory of bodies that are over: room for four of 5 MB, and
// what a few connections need. More of it would only pay under loads that keep it
// in use anyway.
const (
	keptBytes   = 24 << 20
	keptBlocks  = 64
	smallBlock  = 4 << 10
	allocatedBy = 8 << 10 // the allocator's own step for large blocks
)

// freed has the blocks of bodies that are over, for all handlers.
var freed freeList

// freeList keeps memory for reuse, up to a bound. sync.Pool is no substitute:
// it gives large blocks to the garbage collector before they are wanted again,
// and each new one has to be cleared, faulted in and collected.
type freeList struct {
	mu     sync.Mutex
	blocks [][]byte // the one given back last is the last
	bytes  int
}

// take returns a block of size bytes, whose content is whatever it was.
func (f *freeList) take(size int) []byte {
	if block := f.find(size); block != nil {
		return block[:size]
	}
	room := max(size, smallBlock)
	if room > smallBlock {
		room = (room + allocatedBy - 1) &^ (allocatedBy - 1)
	}
	return make([]byte, size, room)
}

// find takes the latest block that size fits into without wasting more than
// half of it.
func (f *freeList) find(size int) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, block := range slices.Backward(f.blocks) {
		if room := cap(block); size <= room && room <= max(2*size, smallBlock) {
			return f.remove(i)
		}
	}
	return nil
}

func (f *freeList) remove(i int) []byte {
	block := f.blocks[i]
	last := len(f.blocks) - 1
	copy(f.blocks[i:], f.blocks[i+1:])
	f.blocks[last] = nil
	f.blocks = f.blocks[:last]
	f.bytes -= cap(block)
	return block
}

// give keeps a block, of which nobody may have a part any more, unless it is
// smaller than any that take returns. The oldest ones make room for it.
func (f *freeList) give(block []byte) {
	if cap(block) < smallBlock || cap(block) > keptBytes {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.blocks) == keptBlocks || f.bytes+cap(block) > keptBytes {
		f.remove(0)
	}
	f.blocks = append(f.blocks, block)
	f.bytes += cap(block)
}
