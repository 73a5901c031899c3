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
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestListAsksForItsMetadataAndChecksItAgain(t *testing.T) {
	s := &fakeServer{replies: map[string][]reply{"GET /v2/sandboxes": {{status: 200, body: `[
		{"sandboxID":"a","state":"running","metadata":{"k":"v","s":"x & y=z","other":"1"},"startedAt":"2026-11-30T12:00:00Z","endAt":"2026-11-30T12:15:00.5+00:00"},
		{"sandboxID":"b","state":"paused","metadata":{"k":"v","s":"x & y=z"},"startedAt":"yesterday"},
		{"sandboxID":"c","state":"running","metadata":{"k":"v"}},
		{"sandboxID":"d","state":"running","metadata":{"k":"w","s":"x & y=z"}},
		{"sandboxID":"e","state":"running","metadata":null},
		{"sandboxID":"f","state":"killing","metadata":{"k":"v","s":"x & y=z"}},
		{"sandboxID":"../g","state":"running","metadata":{"k":"v","s":"x & y=z"}},
		{"sandboxID":"h","state":"running","metadata":{"k":7,"s":"x & y=z"}},
		{"sandboxID":"i","state":7,"metadata":{"k":"v","s":"x & y=z"}},
		7,
		{"sandboxID":"a","state":"running","metadata":{"k":"v","s":"x & y=z"}}
	]`}}}}
	got, err := newTestClient(t, s, nil).List(t.Context(), map[string]string{"k": "v", "s": "x & y=z"})
	if err != nil {
		t.Fatal(err)
	}
	have := make([]string, 0, len(got))
	for _, info := range got {
		have = append(have, info.ID+" "+info.State)
	}
	if want := []string{"a running", "b paused", "i running"}; !reflect.DeepEqual(have, want) {
		t.Errorf("found %q, want %q", have, want)
	}
	if at := got[0].StartedAt; !at.Equal(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)) || got[0].EndAt.Sub(at) != 15*time.Minute+500*time.Millisecond {
		t.Errorf("times %v %v", at, got[0].EndAt)
	}
	if !got[1].StartedAt.IsZero() || got[0].Metadata["other"] != "1" {
		t.Errorf("%+v", got)
	}
	if want := "limit=100&metadata=k%3Dv%26s%3Dx%2B%2526%2By%253Dz&state=running%2Cpaused"; s.last().query != want {
		t.Errorf("query %s\nwant  %s", s.last().query, want)
	}
	query, _ := url.ParseQuery(s.last().query)
	if inner, err := url.ParseQuery(query.Get("metadata")); err != nil || inner.Get("s") != "x & y=z" {
		t.Errorf("metadata %q does not decode to what was asked for", query.Get("metadata"))
	}
}

func TestListOfEverythingHasNoFilter(t *testing.T) {
	s := &fakeServer{replies: map[string][]reply{"GET /v2/sandboxes": {{status: 200, body: `[]`}}}}
	if got, err := newTestClient(t, s, nil).List(t.Context(), nil); err != nil || got != nil {
		t.Errorf("%v %v", got, err)
	}
	if want := "limit=100&state=running%2Cpaused"; s.last().query != want {
		t.Errorf("query %s", s.last().query)
	}
}

// pager is a server whose list has pages for ever, or as many as it is told.
type pager struct {
	pages int
	token func(page int) string
	asked []string
}

func (p *pager) RoundTrip(r *http.Request) (*http.Response, error) {
	p.asked = append(p.asked, r.URL.Query().Get("nextToken"))
	page := len(p.asked)
	header := map[string]string{}
	if page < p.pages {
		header["X-Next-Token"] = p.token(page)
	}
	body := fmt.Sprintf(`[{"sandboxID":"sb%d","state":"running"}]`, page)
	return (&fakeServer{replies: map[string][]reply{"GET /v2/sandboxes": {{status: 200, body: body, header: header}}}}).RoundTrip(r)
}

func TestPagesComeToAnEnd(t *testing.T) {
	number := func(page int) string { return fmt.Sprint("token ", page) }
	for _, test := range []struct {
		name        string
		pager       *pager
		found, asks int
	}{
		{"one", &pager{pages: 1}, 1, 1},
		{"three", &pager{pages: 3, token: number}, 3, 3},
		{"for ever", &pager{pages: 1 << 30, token: number}, maxPages, maxPages},
		{"in a circle", &pager{pages: 1 << 30, token: func(page int) string { return number(page % 3) }}, 4, 4},
		{"a token without end", &pager{pages: 2, token: func(int) string { return strings.Repeat("t", maxPageToken+1) }}, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := newTestClient(t, test.pager, nil).List(t.Context(), nil)
			if err != nil || len(got) != test.found || len(test.pager.asked) != test.asks {
				t.Errorf("%d sandboxes of %d pages, error %v; want %d of %d", len(got), len(test.pager.asked), err, test.found, test.asks)
			}
			if test.asks > 1 && test.pager.asked[1] != "token 1" {
				t.Errorf("tokens %q", test.pager.asked[:2])
			}
		})
	}
}

func TestListOfServersWithVersion1Only(t *testing.T) {
	s := &fakeServer{replies: map[string][]reply{"GET /sandboxes": {{status: 200, body: `[{"sandboxID":"a","metadata":{"k":"v"}}]`}}}}
	c := newTestClient(t, s, nil)
	for calls := 2; calls <= 3; calls++ {
		got, err := c.List(t.Context(), map[string]string{"k": "v"})
		if err != nil || len(got) != 1 || got[0].State != StateRunning {
			t.Errorf("%+v %v", got, err)
		}
		if len(s.seen) != calls {
			t.Errorf("calls %q", s.calls())
		}
	}
}

func TestListsThatCannotBeRead(t *testing.T) {
	for _, test := range []struct {
		reply reply
		want  Kind
	}{
		{reply{status: 200, body: `<html>`}, BadAnswer},
		{reply{status: 200, body: ``}, BadAnswer},
		{reply{status: 500}, Unavailable},
		{reply{status: 401}, Unauthorized},
		{reply{status: 404}, Refused},
		{reply{status: 302}, BadAnswer},
		{reply{}, Unavailable},
	} {
		s := &fakeServer{replies: map[string][]reply{"GET /v2/sandboxes": {test.reply}}}
		_, err := newTestClient(t, s, nil).List(t.Context(), nil)
		wantKind(t, err, test.want)
	}
}
