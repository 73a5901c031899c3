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
	"testing"
	"time"
)

func TestLeasesOfARecord(t *testing.T) {
	now := time.Now()
	var none *record
	rec := none.used("a", "one", now.Add(time.Minute)).used("a", "two", now.Add(time.Minute))
	if !rec.leased("one") || !rec.leased("two") || rec.UsedBy != "two" {
		t.Errorf("two use it: %+v", rec)
	}
	rec = rec.used("a", "one", time.Time{})
	if rec.leased("two") || !rec.leased("one") || rec.UsedBy != "one" {
		t.Errorf("one has stopped: %+v", rec)
	}
	if next := rec.used("b", "one", now.Add(time.Minute)); next.leased("one") || !next.Created.After(rec.Created) {
		t.Errorf("another sandbox has the leases of the last: %+v", next)
	}
	rec.Leases["two"] = now.Add(-time.Second)
	if rec.leased("") {
		t.Error("a lease that has run out holds")
	}
	if next := rec.used("a", "one", time.Time{}); len(next.Leases) != 0 {
		t.Errorf("a lease that has run out is kept: %+v", next)
	}
	rec.Leases["two"] = now.Add(1000 * time.Hour)
	if rec.leased("") {
		t.Error("a lease that no gateway can have given holds")
	}
}

// FuzzRecord holds that no content of the storage makes a process panic, and that
// what is read is written alike.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"version":1,"sandbox_id":"a","created":"2026-01-02T03:04:05Z","used":"2026-01-02T03:04:05Z","used_by":"p","leases":{"p":"2026-01-02T03:04:05Z"}}`))
	f.Add([]byte(`{"version":1,"leases":null}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"version":1,"used":"9999-12-31T23:59:59Z","leases":{"":"0001-01-01T00:00:00Z"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := parseRecord(data)
		if err != nil {
			return
		}
		rec.lives()
		rec.leased("p")
		next := rec.used(rec.Sandbox, "p", time.Now().Add(time.Minute))
		encoded, err := next.encode()
		if err != nil {
			return // a time that JSON does not have
		}
		again, err := parseRecord(encoded)
		if err != nil || again.Sandbox != next.Sandbox || len(again.Leases) != len(next.Leases) || !again.Used.Equal(next.Used) {
			t.Errorf("%+v became %+v (%v)", next, again, err)
		}
	})
}
