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
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
		for value, want := range map[string]time.Duration{
			"": 0, "0": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "1.5": 1500 * time.Millisecond, "-1": 0, "soon": 0, "NaN": 0,
			"99999999999999999999": maxRetryAfter, "Inf": maxRetryAfter,
			in(90 * time.Second): 90 * time.Second, in(-time.Hour): 0, in(1000 * time.Hour): maxRetryAfter,
		} {
			if got := retryAfter(http.Header{"Retry-After": {value}}); got != want {
				t.Errorf("%q is %v, want %v", value, got, want)
			}
		}
	})
}

func TestErrorsSayWhatFailed(t *testing.T) {
	err := fmt.Errorf("session: %w", &Error{Op: "create", Kind: RateLimited, Status: 429})
	if want := "session: e2b: create: rate or concurrency limit reached (status 429)"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	err = &Error{Op: "execute", Kind: Interrupted, Err: context.Canceled}
	if !errors.Is(err, context.Canceled) || !strings.HasSuffix(err.Error(), "execution interrupted: context canceled") {
		t.Errorf("%v", err)
	}
}

func TestKinds(t *testing.T) {
	if KindOf(nil) != 0 || KindOf(errors.New("other")) != 0 || KindOf(fmt.Errorf("x: %w", &Error{Kind: Gone})) != Gone {
		t.Error("KindOf does not follow the chain")
	}
	seen := map[string]bool{}
	for k := Unavailable; k <= BadAnswer; k++ {
		if seen[k.String()] || strings.HasPrefix(k.String(), "kind ") {
			t.Errorf("kind %d is called %q", k, k)
		}
		seen[k.String()] = true
	}
	if Kind(0).String() != "kind 0" {
		t.Errorf("%v", Kind(0))
	}
}
