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

package handler

// Forget gives a bubble tables of its own: their timers do not outlive it.
func Forget() { remembered, replays = newMemory(), newReplayTable() }

// Kept returns how many bytes are kept of earlier requests.
func Kept() int { return remembered.hidden.kept() + replays.done.kept() }

func (t *recent[K, V]) kept() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes
}
