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

package local

import (
	"cmp"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxPage is how many sandboxes one page of the list has at most; E2B's.
const maxPage = 100

// listedSandbox is one entry of the list.
type listedSandbox struct {
	TemplateID  string            `json:"templateID"`
	SandboxID   string            `json:"sandboxID"`
	ClientID    string            `json:"clientID"`
	StartedAt   time.Time         `json:"startedAt"`
	EndAt       time.Time         `json:"endAt"`
	EnvdVersion string            `json:"envdVersion"`
	CPUCount    int               `json:"cpuCount"`
	MemoryMB    int64             `json:"memoryMB"`
	DiskSizeMB  int64             `json:"diskSizeMB"`
	State       string            `json:"state"`
	Metadata    map[string]string `json:"metadata"`
}

// detailedSandbox is the answer to GET /sandboxes/{id}.
type detailedSandbox struct {
	listedSandbox
	EnvdAccessToken string `json:"envdAccessToken"`
}

// list answers GET /sandboxes and /v2/sandboxes: oldest first, filtered by
// metadata and state, in pages.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	wanted, err := url.ParseQuery(query.Get("metadata"))
	if err != nil {
		controlError(w, http.StatusBadRequest, "metadata: "+err.Error())
		return
	}
	limit := maxPage
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxPage {
			controlError(w, http.StatusBadRequest, "limit is "+strconv.Quote(text)+"; it must be 1 to 100")
			return
		}
	}
	page := []listedSandbox{}
	if states := strings.Join(query["state"], ","); states == "" || slices.Contains(strings.Split(states, ","), "running") {
		page = s.matching(wanted, query.Get("nextToken"))
	}
	if len(page) > limit {
		page = page[:limit]
		w.Header().Set("X-Next-Token", pageToken(page[limit-1]))
	}
	writeJSON(w, http.StatusOK, page)
}

// matching returns the sandboxes with the metadata that come after a page's token.
func (s *Server) matching(wanted url.Values, after string) []listedSandbox {
	s.mu.Lock()
	all := make([]*sandbox, 0, len(s.sandboxes))
	for _, sb := range s.sandboxes {
		all = append(all, sb)
	}
	s.mu.Unlock()

	out := []listedSandbox{}
	for _, sb := range all {
		entry := s.entry(sb)
		if hasMetadata(entry.Metadata, wanted) && pageToken(entry) > after {
			out = append(out, entry)
		}
	}
	slices.SortFunc(out, func(a, b listedSandbox) int { return cmp.Compare(pageToken(a), pageToken(b)) })
	return out
}

// pageToken orders the list and marks a place in it.
func pageToken(e listedSandbox) string {
	return e.StartedAt.UTC().Format("20060102T150405.000000000") + "-" + e.SandboxID
}

// hasMetadata tells whether a sandbox has all that a filter names. E2B's SDKs encode
// keys and values once more than other clients do: E2B takes both.
func hasMetadata(have map[string]string, wanted url.Values) bool {
	for key, values := range wanted {
		if value, ok := have[key]; ok && value == values[0] {
			continue
		}
		if value, ok := have[unescaped(key)]; !ok || value != unescaped(values[0]) {
			return false
		}
	}
	return true
}

// unescaped undoes the encoding of a text, where it has one.
func unescaped(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// inspect answers GET /sandboxes/{id}.
func (s *Server) inspect(w http.ResponseWriter, _ *http.Request, sb *sandbox) {
	writeJSON(w, http.StatusOK, detailedSandbox{listedSandbox: s.entry(sb), EnvdAccessToken: sb.token})
}

func (s *Server) entry(sb *sandbox) listedSandbox {
	c := sb.claimed()
	return listedSandbox{
		TemplateID:  c.template,
		SandboxID:   sb.id,
		ClientID:    "local",
		StartedAt:   c.started,
		EndAt:       c.end,
		EnvdVersion: envdVersion,
		CPUCount:    runtime.NumCPU(),
		MemoryMB:    s.cfg.Memory >> 20,
		DiskSizeMB:  s.cfg.Disk >> 20,
		State:       "running",
		Metadata:    c.metadata,
	}
}
