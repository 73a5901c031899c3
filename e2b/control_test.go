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
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const sandboxBody = `{"sandboxID":"sb1","templateID":"t","clientID":"c","envdVersion":"1","domain":null,"envdAccessToken":"envd-secret","trafficAccessToken":null}`

func TestCreateSendsWhatASafeSandboxNeeds(t *testing.T) {
	s := &fakeServer{replies: map[string][]reply{"POST /sandboxes": {{status: 201, body: sandboxBody}}}}
	c := newTestClient(t, s, nil)
	sb, err := c.Create(t.Context(), 1500*time.Millisecond, map[string]string{"k": "v"})
	if err != nil {
		t.Fatal(err)
	}
	if sb.ID != "sb1" {
		t.Errorf("id %q", sb.ID)
	}
	got := map[string]any{}
	if err := json.Unmarshal([]byte(s.last().body), &got); err != nil {
		t.Fatal(err)
	}
	want := `{"allow_internet_access":false,"metadata":{"k":"v"},"secure":true,"templateID":"code-interpreter-v1","timeout":2}`
	if encoded, _ := json.Marshal(got); string(encoded) != want {
		t.Errorf("body %s\nwant %s", encoded, want)
	}
	if key := s.last().header.Get("X-API-Key"); key != testKey {
		t.Errorf("X-API-Key %q", key)
	}
}

func TestKeylessServersGetNoKey(t *testing.T) {
	s := &fakeServer{replies: map[string][]reply{"POST /sandboxes": {{status: 201, body: sandboxBody}}}}
	c := newTestClient(t, s, func(config *Config) { config.APIKey = "" })
	if _, err := c.Create(t.Context(), minute, nil); err != nil {
		t.Fatal(err)
	}
	if _, sent := s.last().header["X-Api-Key"]; sent {
		t.Error("an empty X-API-Key was sent")
	}
}

func TestAPIURLKeepsItsPath(t *testing.T) {
	s := &fakeServer{replies: map[string][]reply{"POST /e2b/api/sandboxes": {{status: 201, body: sandboxBody}}}}
	c := newTestClient(t, s, func(config *Config) { config.APIURL = "http://control.test:8080/e2b/api/" })
	if _, err := c.Create(t.Context(), minute, nil); err != nil {
		t.Fatal(err)
	}
}

// Each row is what the two versions of a call answer, and what comes of it.
func TestVersionsOfCalls(t *testing.T) {
	const ok = 201
	tests := []struct {
		name       string
		v1, v2     int
		create     Kind // 0: success
		connect    Kind
		remembered int32 // version plus 1
		calls      int
	}{
		{name: "only version 1", v1: ok, v2: 404, remembered: v1 + 1, calls: 1},
		{name: "only version 2, 404", v1: 404, v2: ok, remembered: v2 + 1, calls: 2},
		{name: "only version 2, 405", v1: 405, v2: ok, remembered: v2 + 1, calls: 2},
		{name: "only version 2, 410", v1: 410, v2: ok, remembered: v2 + 1, calls: 2},
		{name: "only version 2, 501", v1: 501, v2: ok, remembered: v2 + 1, calls: 2},
		{name: "404 of both", v1: 404, v2: 404, create: Refused, connect: Gone, calls: 2},
		{name: "404 of version 1, the other missing", v1: 404, v2: 405, create: Refused, connect: Gone, calls: 2},
		{name: "404 of version 2, the other missing", v1: 405, v2: 404, create: Refused, connect: Gone, calls: 2},
		{name: "neither there", v1: 405, v2: 501, create: Refused, connect: Refused, calls: 2},
		{name: "rate limit behind a missing one", v1: 404, v2: 429, create: RateLimited, connect: RateLimited, calls: 2},
		{name: "rate limit", v1: 429, v2: ok, create: RateLimited, connect: RateLimited, calls: 1},
		{name: "failure", v1: 500, v2: ok, create: Unavailable, connect: Unavailable, calls: 1},
		{name: "placement failure", v1: 504, v2: ok, create: Unavailable, connect: Unavailable, calls: 1},
		{name: "wrong key", v1: 401, v2: ok, create: Unauthorized, connect: Unauthorized, calls: 1},
		{name: "forbidden", v1: 403, v2: ok, create: Unauthorized, connect: Unauthorized, calls: 1},
		{name: "bad request", v1: 400, v2: ok, create: Refused, connect: Refused, calls: 1},
		{name: "redirect", v1: 307, v2: ok, create: BadAnswer, connect: BadAnswer, calls: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, op := range []string{"create", "connect"} {
				suffix, call := "", func(c *Client) error { _, err := c.Create(t.Context(), minute, nil); return err }
				want := test.create
				if op == "connect" {
					suffix, want = "/sb1/connect", test.connect
					call = func(c *Client) error { _, err := c.Connect(t.Context(), "sb1", minute); return err }
				}
				s := &fakeServer{replies: map[string][]reply{
					"POST /sandboxes" + suffix:    {{status: test.v1, body: sandboxBody, header: map[string]string{"Location": "http://elsewhere.test/"}}},
					"POST /v2/sandboxes" + suffix: {{status: test.v2, body: sandboxBody}},
				}}
				c := newTestClient(t, s, nil)
				err := call(c)
				if want == 0 && err != nil {
					t.Fatalf("%s: %v", op, err)
				}
				if want != 0 {
					wantKind(t, err, want)
				}
				r := &c.create
				if op == "connect" {
					r = &c.connect
				}
				if known := r.known.Load(); known != test.remembered {
					t.Errorf("%s: version %d is remembered, want %d", op, known-1, test.remembered-1)
				}
				if n := len(s.calls()); n != test.calls {
					t.Errorf("%s: calls %q, want %d", op, s.calls(), test.calls)
				}
			}
		})
	}
}

func TestARememberedVersionIsTriedFirst(t *testing.T) {
	s := &fakeServer{replies: map[string][]reply{"POST /v2/sandboxes": {{status: 201, body: sandboxBody}}}}
	c := newTestClient(t, s, nil)
	for range 2 {
		if _, err := c.Create(t.Context(), minute, nil); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"POST /sandboxes", "POST /v2/sandboxes", "POST /v2/sandboxes"}
	if got := s.calls(); !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
}

// Gateways answer unknown paths in their own ways, which say nothing about a
// sandbox whose server is known to have the other version.
func TestTheAnswerOfAKnownVersionIsMeant(t *testing.T) {
	s := &fakeServer{replies: map[string][]reply{
		"POST /sandboxes/sb1/connect":    {{status: 200, body: sandboxBody}, {status: 404}},
		"POST /v2/sandboxes/sb1/connect": {{status: 403}},
	}}
	c := newTestClient(t, s, nil)
	if _, err := c.Connect(t.Context(), "sb1", minute); err != nil {
		t.Fatal(err)
	}
	_, err := c.Connect(t.Context(), "sb1", minute)
	wantKind(t, err, Gone)
}

func TestRetryAfterOfARateLimitIsKept(t *testing.T) {
	s := &fakeServer{replies: map[string][]reply{"POST /sandboxes": {{status: 429, header: map[string]string{"Retry-After": "7"}}}}}
	_, err := newTestClient(t, s, nil).Create(t.Context(), minute, nil)
	if e := wantKind(t, err, RateLimited); e.RetryAfter != 7*time.Second || e.Status != 429 {
		t.Errorf("%+v", e)
	}
}

// Answers that must not be used. The id is what must be killed.
func TestHalfMadeSandboxesAreKilled(t *testing.T) {
	tests := []struct{ name, body, killed string }{
		{"a domain with a path", `{"sandboxID":"sb1","domain":"evil.test/x"}`, "sb1"},
		{"a domain with user information", `{"sandboxID":"sb1","domain":"a@evil.test"}`, "sb1"},
		{"an address as domain", `{"sandboxID":"sb1","domain":"169.254.169.254"}`, "sb1"},
		{"a token with a line break", `{"sandboxID":"sb1","envdAccessToken":"a\r\nX-Evil: 1"}`, "sb1"},
		{"a traffic token with a space", `{"sandboxID":"sb1","trafficAccessToken":"a b"}`, "sb1"},
		{"a field of the wrong type", `{"sandboxID":"sb1","domain":7}`, "sb1"},
		{"a cut body", `{"templateID":"t","sandboxID": "sb1","clientID"`, "sb1"},
		{"an id with a path", `{"sandboxID":"../sb1"}`, ""},
		{"an id that is too long", `{"sandboxID":"` + strings.Repeat("a", 129) + `"}`, ""},
		{"no id", `{"templateID":"t"}`, ""},
		{"an empty body", ``, ""},
		{"no object", `["sb1"]`, ""},
		{"no JSON", `<html>created</html>`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &fakeServer{replies: map[string][]reply{
				"POST /sandboxes":       {{status: 201, body: test.body}},
				"DELETE /sandboxes/sb1": {{status: 204}},
			}}
			_, err := newTestClient(t, s, nil).Create(t.Context(), minute, nil)
			wantKind(t, err, BadAnswer)
			want := []string{"POST /sandboxes"}
			if test.killed != "" {
				want = append(want, "DELETE /sandboxes/"+test.killed)
			}
			if got := s.calls(); !slices.Equal(got, want) {
				t.Errorf("calls %q, want %q", got, want)
			}
		})
	}
}

func TestKillingAHalfMadeSandboxIsRetriedAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{replies: map[string][]reply{
			"POST /sandboxes":       {{status: 201, body: `{"sandboxID":"sb1","domain":"/"}`}},
			"DELETE /sandboxes/sb1": {{status: 503}, {status: 503}, {status: 204}},
		}}
		_, err := newTestClient(t, s, nil).Create(t.Context(), minute, nil)
		wantKind(t, err, BadAnswer)
		if got := s.calls(); len(got) != 4 {
			t.Errorf("calls %q, want one creation and three deletions", got)
		}

		s.replies["DELETE /sandboxes/sb1"] = []reply{{status: 503}}
		start := time.Now()
		_, err = newTestClient(t, s, nil).Create(t.Context(), minute, nil)
		wantKind(t, err, BadAnswer)
		if took := time.Since(start); took != killTime {
			t.Errorf("gave up after %v, want %v", took, killTime)
		}
	})
}

func TestConnectRefusesAnotherSandbox(t *testing.T) {
	s := &fakeServer{replies: map[string][]reply{"POST /sandboxes/sb2/connect": {{status: 200, body: sandboxBody}}}}
	_, err := newTestClient(t, s, nil).Connect(t.Context(), "sb2", minute)
	wantKind(t, err, BadAnswer)
}

func TestIDsThatNoServerGaveAreNotSent(t *testing.T) {
	s := &fakeServer{}
	c := newTestClient(t, s, nil)
	for _, id := range []string{"", "..", "a/b", "a?b", "a b", "ä", strings.Repeat("a", 129)} {
		_, err := c.Connect(t.Context(), id, minute)
		wantKind(t, err, BadAnswer)
		wantKind(t, c.Delete(t.Context(), id), BadAnswer)
		wantKind(t, c.Pause(t.Context(), id), BadAnswer)
		wantKind(t, c.Extend(t.Context(), newTestSandbox(id, ""), minute), BadAnswer)
		wantKind(t, c.Execute(t.Context(), newTestSandbox(id, ""), Execution{}, nil), BadAnswer)
	}
	wantKind(t, c.Execute(t.Context(), &Sandbox{ID: "never-connected"}, Execution{}, nil), BadAnswer)
	if got := s.calls(); len(got) != 0 {
		t.Errorf("calls %q", got)
	}
}

func TestExtend(t *testing.T) {
	timeout, connect, connect2 := "POST /sandboxes/sb1/timeout", "POST /sandboxes/sb1/connect", "POST /v2/sandboxes/sb1/connect"
	tests := []struct {
		name     string
		timeout  int
		connect  int
		want     Kind
		support  int32
		calls    []string
		callsTwo []string // of a second Extend
	}{
		{"the call is there", 204, 500, 0, supported, []string{timeout}, []string{timeout}},
		{"the call is missing, 404", 404, 200, 0, unsupported, []string{timeout, connect}, []string{connect}},
		{"the call is missing, 405", 405, 200, 0, unsupported, []string{timeout, connect}, []string{connect}},
		{"the call is missing, 501", 501, 200, 0, unsupported, []string{timeout, connect}, []string{connect}},
		{"the sandbox is gone", 404, 404, Gone, supportUnknown, []string{timeout, connect, connect2}, []string{timeout, connect, connect2}},
		{"connect fails", 405, 500, Unavailable, supportUnknown, []string{timeout, connect}, []string{timeout, connect}},
		{"the call fails", 500, 200, Unavailable, supportUnknown, []string{timeout}, []string{timeout}},
		{"not authorized", 401, 200, Unauthorized, supportUnknown, []string{timeout}, []string{timeout}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &fakeServer{replies: map[string][]reply{timeout: {{status: test.timeout}}, connect: {{status: test.connect, body: sandboxBody}}}}
			c := newTestClient(t, s, nil)
			sb := newTestSandbox("sb1", "")
			for _, calls := range [][]string{test.calls, test.callsTwo} {
				s.seen = nil
				err := c.Extend(t.Context(), sb, 90*time.Second)
				if test.want != 0 {
					wantKind(t, err, test.want)
				} else if err != nil {
					t.Fatal(err)
				}
				if got := s.calls(); !slices.Equal(got, calls) {
					t.Errorf("calls %q, want %q", got, calls)
				}
				if body := s.seen[0].body; body != `{"timeout":90}` {
					t.Errorf("body %s", body)
				}
			}
			if got := c.timeout.Load(); got != test.support {
				t.Errorf("support %d, want %d", got, test.support)
			}
		})
	}
}

func TestA404AfterSuccessIsNoMissingTimeoutCall(t *testing.T) {
	s := &fakeServer{replies: map[string][]reply{
		"POST /sandboxes/sb1/timeout": {{status: 204}, {status: 404}},
		"POST /sandboxes/sb1/connect": {{status: 200, body: sandboxBody}},
	}}
	c := newTestClient(t, s, nil)
	for range 2 {
		if err := c.Extend(t.Context(), newTestSandbox("sb1", ""), minute); err != nil {
			t.Fatal(err)
		}
	}
	if c.timeout.Load() != supported {
		t.Error("a paused sandbox made the client forget the call")
	}
}

func TestExtendKeepsTheTokensOfAConnection(t *testing.T) {
	s := &fakeServer{replies: map[string][]reply{
		"POST /sandboxes/sb1/connect": {{status: 200, body: `{"sandboxID":"sb1","envdAccessToken":"fresh"}`}},
		"POST /execute":               {{status: 200, body: `{"type":"end_of_execution"}`}},
	}}
	c := newTestClient(t, s, nil)
	sb := newTestSandbox("sb1", "")
	if err := c.Extend(t.Context(), sb, minute); err != nil {
		t.Fatal(err)
	}
	if err := c.Execute(t.Context(), sb, Execution{Code: "1"}, func(Event) {}); err != nil {
		t.Fatal(err)
	}
	if token := s.last().header.Get("X-Access-Token"); token != "fresh" {
		t.Errorf("token %q", token)
	}
}

func TestDeleteAndPause(t *testing.T) {
	tests := []struct {
		status        int
		delete, pause Kind
	}{
		{204, 0, 0},
		{200, 0, 0},
		{404, 0, Gone},
		{409, Refused, 0},
		{401, Unauthorized, Unauthorized},
		{429, RateLimited, RateLimited},
		{500, Unavailable, Unavailable},
		{302, BadAnswer, BadAnswer},
	}
	for _, test := range tests {
		s := &fakeServer{replies: map[string][]reply{
			"DELETE /sandboxes/sb1": {{status: test.status}}, "POST /sandboxes/sb1/pause": {{status: test.status}},
		}}
		c := newTestClient(t, s, nil)
		if got := KindOf(c.Delete(t.Context(), "sb1")); got != test.delete {
			t.Errorf("%d: delete is %q, want %q", test.status, got, test.delete)
		}
		if got := KindOf(c.Pause(t.Context(), "sb1")); got != test.pause {
			t.Errorf("%d: pause is %q, want %q", test.status, got, test.pause)
		}
		if got := s.calls(); len(got) != 2 {
			t.Errorf("%d: calls %q, want one each", test.status, got)
		}
	}
}

func TestACanceledContextIsVisible(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := newTestClient(t, &fakeServer{}, nil)
	_, err := c.Create(ctx, minute, nil)
	if e := wantKind(t, err, Unavailable); !errors.Is(e.Err, context.Canceled) {
		t.Errorf("cause %v", e.Err)
	}
	if _, err = c.List(ctx, nil); KindOf(err) != Unavailable {
		t.Errorf("list: %v", err)
	}
}

func TestHugeControlAnswersAreGivenUp(t *testing.T) {
	s := &fakeServer{replies: map[string][]reply{
		"POST /sandboxes":       {{status: 201, body: `{"sandboxID":"sb1","alias":"` + strings.Repeat("a", maxControlBody) + `"}`}},
		"DELETE /sandboxes/sb1": {{status: http.StatusNoContent}},
	}}
	_, err := newTestClient(t, s, nil).Create(t.Context(), minute, nil)
	wantKind(t, err, TooLarge)
	if got := s.calls(); len(got) != 2 {
		t.Errorf("calls %q, want the sandbox killed", got)
	}
}
