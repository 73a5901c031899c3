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

// Kept returns how many bytes an answer holds of the chunk: texts and calls add
// up, all else is let go.
func (c *Chunk) Kept() int {
	n := 0
	for _, m := range c.delta {
		n += m.value.end - m.value.start
	}
	return n
}

// CallCount returns the number of calls that have begun. Unlike Calls it costs
// nothing.
func (a *Answer) CallCount() int { return max(len(a.calls.calls), len(a.legacy.calls)) }
