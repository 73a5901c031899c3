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
	"cmp"
	"slices"
	"sync"
)

// fleet are all backends with sandboxes: those that are configured, and those
// that no configuration has any more until their last sandbox has ended.
var fleet members

// members is a set of backends. It is safe for concurrent use.
type members struct {
	mu  sync.Mutex
	set map[*backend]struct{}
}

func (m *members) add(b *backend) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.set == nil {
		m.set = make(map[*backend]struct{})
	}
	m.set[b] = struct{}{}
}

func (m *members) remove(b *backend) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.set, b)
}

// all returns the backends in a stable order.
func (m *members) all() []*backend {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*backend, 0, len(m.set))
	for b := range m.set {
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b *backend) int { return cmp.Or(cmp.Compare(a.engine, b.engine), cmp.Compare(a.id, b.id)) })
	return list
}
