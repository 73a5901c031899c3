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

package e2b

import (
	"encoding/json"
	"regexp"
	"sync/atomic"
	"time"
)

// Sandbox is a sandbox that can be used. Its tokens appear in no form in which
// it can be printed, logged or encoded. It is safe for concurrent use.
type Sandbox struct {
	ID string

	access atomic.Pointer[access] // a pointer, which no formatting follows
}

// access is what the data plane of one sandbox needs; it never changes.
type access struct {
	domain       string // "" when the answer named none
	token        string // X-Access-Token
	trafficToken string // E2B-Traffic-Access-Token
}

// String returns the sandbox's id.
func (s *Sandbox) String() string { return s.ID }

// GoString is String: %#v shows no token either.
func (s *Sandbox) GoString() string { return "e2b.Sandbox(" + s.ID + ")" }

// MarshalText encodes the sandbox as its id.
func (s *Sandbox) MarshalText() ([]byte, error) { return []byte(s.ID), nil }

// Info is what the list of sandboxes says about one.
type Info struct {
	ID        string
	State     string // "running" or "paused"
	Metadata  map[string]string
	StartedAt time.Time // zero when not told
	EndAt     time.Time // zero when not told
}

// States of a sandbox.
const (
	StateRunning = "running"
	StatePaused  = "paused"
)

var (
	validContextID = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$`)
	anySandboxID   = regexp.MustCompile(`"sandboxID"\s*:\s*"([A-Za-z0-9_-]{1,128})"`)
)

// validSandboxID says whether an id can stand in a host name, a path and a header:
// 1 to 128 letters, digits, _ and -. It is asked before each call.
func validSandboxID(id string) bool {
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return id != "" && len(id) <= 128
}

// sandboxAnswer is the body of a creation or connection.
type sandboxAnswer struct {
	SandboxID          string  `json:"sandboxID"`
	Domain             *string `json:"domain"`
	EnvdAccessToken    *string `json:"envdAccessToken"`
	TrafficAccessToken *string `json:"trafficAccessToken"`
}

// parseSandbox reads such a body. The id is returned whenever it is there and
// valid, also beside an error, so that a half-made sandbox can be killed.
func parseSandbox(body []byte) (a sandboxAnswer, id string, err error) {
	if err := json.Unmarshal(body, &a); err != nil {
		if m := anySandboxID.FindSubmatch(body); m != nil {
			id = string(m[1])
		}
		return a, id, errNotJSON
	}
	if !validSandboxID(a.SandboxID) {
		return a, "", errBadID
	}
	switch {
	case deref(a.Domain) != "" && !validDomain(*a.Domain):
		return a, a.SandboxID, errBadDomain
	case !headerSafe(deref(a.EnvdAccessToken)), !headerSafe(deref(a.TrafficAccessToken)):
		return a, a.SandboxID, errBadToken
	}
	return a, a.SandboxID, nil
}

func (a sandboxAnswer) access() *access {
	return &access{domain: deref(a.Domain), token: deref(a.EnvdAccessToken), trafficToken: deref(a.TrafficAccessToken)}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// headerSafe is whether a secret can stand in a header: printable ASCII
// without spaces, and not so long that servers refuse the request.
func headerSafe(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return len(s) <= 8<<10
}
