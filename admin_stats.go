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
	"net/http"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// backendInfo is a backend as operators see it.
type backendInfo struct {
	ID        string                `json:"id"`
	Engine    string                `json:"engine"`
	Loaded    bool                  `json:"loaded"` // false: no configuration has it, it ends with its last request
	Limits    limitsInfo            `json:"limits"`
	Places    int                   `json:"places"` // taken of limits.max, those of sandboxes being deleted included
	Sandboxes map[session.State]int `json:"sandboxes"`
	Paused    int                   `json:"paused"` // at the provider, those of other gateways too, as of minutes ago
	Waiting   int                   `json:"waiting"`
	Health    healthInfo            `json:"health"`
}

// healthInfo says whether the provider makes sandboxes.
type healthInfo struct {
	Failing  bool      `json:"failing"` // programs that need a new sandbox are refused until it works again
	Since    time.Time `json:"since,omitzero"`
	NextTry  time.Time `json:"next_try,omitzero"`
	Failures int       `json:"failures"` // creations in a row
	Error    string    `json:"error,omitempty"`
}

func describeHealth(h session.Health) healthInfo {
	info := healthInfo{Failing: h.Failing, Since: h.Since, NextTry: h.Next, Failures: h.Failures}
	if h.Err != nil {
		info.Error = h.Err.Error()
	}
	return info
}

// limitsInfo are the limits in force, durations in the form of the Caddyfile.
type limitsInfo struct {
	Max            int    `json:"max"`
	MaxPerIdentity int    `json:"max_per_identity"`
	Idle           string `json:"idle"`
	ExecTimeout    string `json:"exec_timeout"`
	SandboxTimeout string `json:"sandbox_timeout"`
	QueueTimeout   string `json:"queue_timeout"`
	DeleteOnExit   bool   `json:"delete_on_exit"`
}

// statsInfo is the answer to GET stats.
type statsInfo struct {
	Backends []backendInfo `json:"backends"`
}

func (adminAPI) stats(*http.Request) (any, error) {
	stats := statsInfo{Backends: []backendInfo{}}
	for _, b := range fleet.all() {
		stats.Backends = append(stats.Backends, b.stats())
	}
	return stats, nil
}

func (b *backend) stats() backendInfo {
	s := b.pool.Stats()
	return backendInfo{
		ID: b.id, Engine: b.engine, Loaded: b.loaded(),
		Limits: limitsInfo{
			Max: s.Limits.Max, MaxPerIdentity: s.Limits.MaxPerIdentity,
			Idle: s.Limits.Idle.String(), ExecTimeout: s.Limits.ExecTimeout.String(),
			SandboxTimeout: s.Limits.SandboxTimeout.String(), QueueTimeout: s.Limits.QueueTimeout.String(),
			DeleteOnExit: s.Limits.DeleteOnExit,
		},
		Places: s.Places, Sandboxes: s.States, Paused: s.Paused, Waiting: s.Waiting, Health: describeHealth(s.Health),
	}
}
