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

package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// maxLease is longer than any lease that a process gives itself: one beyond comes
// from a clock that is wrong, and would hold a session for good.
const maxLease = 24 * time.Hour

// recordVersion is that of the records this process writes and understands.
const recordVersion = 1

// record says which sandbox a session has, and who uses it. There is one for
// each session that is shared. Nothing in it is readable.
type record struct {
	Version int    `json:"version"`
	Sandbox string `json:"sandbox_id,omitempty"` // empty while it is being got
	Paused  bool   `json:"paused,omitempty"`

	Created time.Time `json:"created"`
	Used    time.Time `json:"used"`    // when a use of it began or ended the last time
	UsedBy  string    `json:"used_by"` // the process that did

	// Leases are the processes that use the sandbox, and until when that can be
	// relied on.
	Leases map[string]time.Time `json:"leases,omitempty"`
}

func parseRecord(data []byte) (*record, error) {
	rec := new(record)
	if err := json.Unmarshal(data, rec); err != nil {
		return nil, err
	}
	if rec.Version != recordVersion {
		return nil, fmt.Errorf("version %d is not %d", rec.Version, recordVersion)
	}
	return rec, nil
}

func (r *record) encode() ([]byte, error) { return json.Marshal(r) }

// used returns the record after a use of the sandbox by a process, which leases
// it until a time; the zero time for a use that has ended. Leases that have run
// out are dropped.
func (r *record) used(sandbox, by string, until time.Time) *record {
	now := time.Now()
	next := &record{Version: recordVersion, Created: now, Leases: make(map[string]time.Time)}
	if r != nil && r.Sandbox == sandbox {
		next.Created = r.Created
		maps.Copy(next.Leases, r.Leases)
	}
	next.Sandbox, next.Used, next.UsedBy = sandbox, now, by
	delete(next.Leases, by)
	if !until.IsZero() {
		next.Leases[by] = until
	}
	maps.DeleteFunc(next.Leases, func(_ string, until time.Time) bool { return !until.After(now) })
	return next
}

// leased says whether any process uses the sandbox, but for one.
func (r *record) leased(except string) bool {
	now := time.Now()
	for by, until := range r.Leases {
		if by != except && until.After(now) && until.Before(now.Add(maxLease)) {
			return true
		}
	}
	return false
}

// lives says whether the session counts as one that its caller has.
func (r *record) lives() bool {
	return r != nil && !r.Paused && (r.Sandbox != "" || r.leased(""))
}
