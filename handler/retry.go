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

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire"
)

// How a follow-up request is sent again. Code never runs again for it.
const (
	maxRetries   = 2
	firstBackoff = 250 * time.Millisecond
	longestWait  = 5 * time.Second // the longest Retry-After that is waited for
)

// ask has the upstream answer what there is so far. The first turn is passed
// on as it comes; later ones, of which the client knows nothing, are sent
// again when that can help.
func (x *exchange) ask() result {
	adapted := false
	for retries := 0; ; {
		res := (&turn{x: x, first: len(x.past) == 0}).take()
		if len(x.past) == 0 {
			return res
		}
		if wait, ok := transient(res, retries); ok && retries < maxRetries {
			retries++
			if !sleep(x.ctx, wait) {
				return res
			}
			x.h.Metrics.retry(retryTransient)
			continue
		}
		if !adapted && res.refused != nil && x.adapt(res.refused) {
			adapted = true
			x.h.Metrics.retry(retryEcho)
			continue
		}
		return res
	}
}

// transient says whether a failure may be over soon, and when to try again.
func transient(res result, retries int) (time.Duration, bool) {
	backoff := firstBackoff << retries
	backoff += rand.N(backoff / 2) //nolint:gosec // jitter needs no secrecy
	switch {
	case res.failed != nil:
		// Our own timeout is a 504 too, and ends the wait at once.
		return backoff, slices.Contains(passing, res.failed.status)
	case res.refused == nil:
		return 0, false
	}
	after, named := retryAfter(res.refused.header)
	if named {
		backoff = after
	}
	again := slices.Contains(passing, res.refused.status) || named && res.refused.status == http.StatusTooManyRequests
	return backoff, again && backoff <= longestWait
}

// passing are the statuses of failures that may be over soon.
var passing = []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

func retryAfter(header http.Header) (time.Duration, bool) {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds >= 0 && seconds < 1e6 {
		return time.Duration(seconds * float64(time.Second)), true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(time.Until(at), 0), true
	}
	return 0, false
}

// sleep waits, and says whether it could wait to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// adapt changes what is echoed when the upstream says which of its members
// it does not take, and says whether it did. Some providers send what they refuse
// to get back: https://github.com/NousResearch/hermes-agent/issues/34716 and
// https://github.com/SAIL-Research-Lab/cheetahclaws/pull/72
func (x *exchange) adapt(r *response) bool {
	if r.status != http.StatusBadRequest && r.status != http.StatusUnprocessableEntity {
		return false
	}
	for i := range x.past {
		for _, name := range x.past[i].answer.Fields() {
			if names(r.body, name) && x.echoWithout(wire.Dropped{Names: []string{name}}) {
				return true
			}
		}
	}
	return names(r.body, "content") && x.echoWithout(wire.Dropped{FlipContent: true})
}

// echoWithout has the echoes made anew, and says whether they are others now.
// The same request would be refused again.
func (x *exchange) echoWithout(more wire.Dropped) (changed bool) {
	without := wire.Dropped{
		Names:       slices.Concat(x.without.Names, more.Names),
		FlipContent: x.without.FlipContent || more.FlipContent,
	}
	for i := range x.past {
		p := &x.past[i]
		before := p.echo
		p.echo = p.answer.Echo(p.calls, without)
		changed = changed || !bytes.Equal(p.echo, before)
	}
	if changed {
		x.without = without
	}
	return changed
}

// escapes are those of JSON: a line feed or a quote may stand before a name.
var escapes = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|.)`)

// names says whether a text has a name as a word of its own.
func names(text []byte, name string) bool {
	if name == "" {
		return false
	}
	text = escapes.ReplaceAll(text, []byte(" "))
	for {
		at := bytes.Index(text, []byte(name))
		if at < 0 {
			return false
		}
		end := at + len(name)
		if (at == 0 || !inWord(text[at-1])) && (end == len(text) || !inWord(text[end])) {
			return true
		}
		text = text[end:]
	}
}

func inWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
