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
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Bounds of a list: whatever a server answers, it comes to an end.
const (
	maxPages     = 50
	pageSize     = "100"
	maxPageToken = 4 << 10
)

// listed is a sandbox in a list. Times are strings so that one that does not
// parse spoils itself alone.
type listed struct {
	SandboxID string            `json:"sandboxID"`
	State     string            `json:"state"`
	Metadata  map[string]string `json:"metadata"`
	StartedAt string            `json:"startedAt"`
	EndAt     string            `json:"endAt"`
}

// List returns the running and paused sandboxes that carry all of metadata.
// Servers that ignore the filter are filtered here. The list is a hint: it may
// lag behind, and ends after 5,000 sandboxes.
func (c *Client) List(ctx context.Context, metadata map[string]string) ([]Info, error) {
	filter := url.Values{}
	for k, v := range metadata {
		filter.Set(k, v)
	}
	query := url.Values{"metadata": {filter.Encode()}, "state": {StateRunning + "," + StatePaused}, "limit": {pageSize}}
	if len(metadata) == 0 {
		query.Del("metadata")
	}
	var found []Info
	seenIDs, seenTokens := map[string]bool{}, map[string]bool{}
	for range maxPages {
		page, token, err := c.page(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, l := range page {
			if info, ok := l.info(); ok && hasAll(info.Metadata, metadata) && !seenIDs[info.ID] {
				seenIDs[info.ID] = true
				found = append(found, info)
			}
		}
		if token == "" || len(token) > maxPageToken || seenTokens[token] {
			break
		}
		seenTokens[token] = true
		query.Set("nextToken", token)
	}
	return found, nil
}

// page gets one page and the token of the next one.
func (c *Client) page(ctx context.Context, query url.Values) ([]listed, string, error) {
	call := controlCall{op: "list", method: http.MethodGet, path: "/sandboxes", query: query}
	a, err := c.versioned(ctx, &c.list, call)
	if err != nil {
		return nil, "", err
	}
	var page []listed
	if err := decodeLenient(a.body, &page); err != nil {
		return nil, "", &Error{Op: call.op, Kind: BadAnswer, Status: a.status, Err: errNotJSON}
	}
	return page, a.header.Get("X-Next-Token"), nil
}

// info checks what a list says about a sandbox.
func (l listed) info() (Info, bool) {
	info := Info{ID: l.SandboxID, State: strings.ToLower(l.State), Metadata: l.Metadata, StartedAt: parseTime(l.StartedAt), EndAt: parseTime(l.EndAt)}
	if info.State == "" { // version 1 lists running ones and does not say so
		info.State = StateRunning
	}
	return info, validSandboxID(info.ID) && (info.State == StateRunning || info.State == StatePaused)
}

func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

func hasAll(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}
