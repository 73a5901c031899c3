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
	"net/http"
	"slices"
	"strings"
	"testing"
)

const okBody = `{"type":"end_of_execution"}`

func TestURLsOfTheDataPlane(t *testing.T) {
	tests := []struct {
		name, sandboxURL, domain, returned string
		want                               string
	}{
		{"default of another domain", "", "sandboxes.test", "", "https://49999-sb1.sandboxes.test/execute"},
		{"a returned domain", "", "sandboxes.test", "eu.sandboxes.test:8443", "https://49999-sb1.eu.sandboxes.test:8443/execute"},
		{"a configured address", "", "10.0.0.1:3000", "", "https://49999-sb1.10.0.0.1:3000/execute"},
		{"E2B's shared host", "", "", "", "https://sandbox.e2b.app/execute"},
		{"E2B's other shared host", "", "", "e2b.dev", "https://sandbox.e2b.dev/execute"},
		{"a domain below E2B's", "", "", "eu.e2b.app", "https://49999-sb1.eu.e2b.app/execute"},
		{"one base URL", "http://10.0.0.1:3000", "", "e2b.app", "http://10.0.0.1:3000/execute"},
		{"a base URL with a path", "https://gateway.test/sandboxes/", "", "", "https://gateway.test/sandboxes/execute"},
		{"a template, plain HTTP", "http://{port}-{id}.{domain}", "e2b.local:3002", "", "http://49999-sb1.e2b.local:3002/execute"},
		{"a template by path", "https://gateway.test/sandbox/{id}/{port}", "", "", "https://gateway.test/sandbox/sb1/49999/execute"},
		{"a template with a returned domain", "https://{domain}/kruise/{id}/{port}", "", "a.test", "https://a.test/kruise/sb1/49999/execute"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got string
			var header http.Header
			c := newTestClient(t, roundTripFunc(func(r *http.Request) (*http.Response, error) {
				got, header = r.URL.String(), r.Header
				return (&fakeServer{replies: map[string][]reply{"POST " + r.URL.Path: {{status: 200, body: okBody}}}}).RoundTrip(r)
			}), func(config *Config) { config.SandboxURL, config.Domain = test.sandboxURL, test.domain })
			if err := c.Execute(t.Context(), newTestSandbox("sb1", test.returned), Execution{Code: "1"}, func(Event) {}); err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("URL %s, want %s", got, test.want)
			}
			for name, want := range map[string]string{
				"E2b-Sandbox-Id": "sb1", "E2b-Sandbox-Port": "49999", "X-Access-Token": "envd-secret",
				"E2B-Traffic-Access-Token": "traffic-secret", "X-API-Key": "", "Content-Type": "application/json",
			} {
				if header.Get(name) != want {
					t.Errorf("%s: %q, want %q", name, header.Get(name), want)
				}
			}
		})
	}
}

// What the shared host and the sandbox's own one answer to the first call, and
// whether the shared one is used from then on.
func TestTheSharedHostIsUsedWhereItIsServed(t *testing.T) {
	const shared, direct = "POST sandbox.e2b.app/execute", "POST 49999-sb1.e2b.app/execute"
	ok := reply{status: 200, body: okBody}
	tests := []struct {
		name           string
		shared, direct reply
		want           Kind
		support        int32
		calls          int
	}{
		{"served", ok, ok, 0, supported, 1},
		{"unknown to the proxy", reply{status: 400}, ok, 0, unsupported, 2},
		{"no such site", reply{status: 404}, ok, 0, unsupported, 2},
		{"misdirected", reply{status: 421}, ok, 0, unsupported, 2},
		{"a proxy's page", reply{status: 502, body: "<html>"}, ok, 0, unsupported, 2},
		{"no such host", reply{}, ok, 0, unsupported, 2},
		{"the sandbox is gone", reply{status: 502, body: "was not found"}, reply{status: 502, body: "was not found"}, Gone, supportUnknown, 2},
		{"refused for another reason", reply{status: 408}, ok, Refused, supportUnknown, 1},
		{"the code may have run", reply{status: 500}, ok, Interrupted, supportUnknown, 1},
		{"not authorized", reply{status: 401}, ok, Unauthorized, supportUnknown, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &fakeServer{replies: map[string][]reply{shared: {test.shared}, direct: {test.direct}}}
			c := newTestClient(t, s, func(config *Config) { config.SandboxURL = "" })
			for i := range 2 {
				s.seen = nil
				_, err := execute(t.Context(), c, Execution{Code: "1"})
				if KindOf(err) != test.want {
					t.Fatalf("error %v, want kind %q", err, test.want)
				}
				if n := len(s.seen); (i == 0 || test.support == supportUnknown) && n != test.calls {
					t.Errorf("%d calls, want %d", n, test.calls)
				}
			}
			if got := c.sharedURL.Load(); got != test.support {
				t.Errorf("support %d, want %d", got, test.support)
			}
			last := map[int32]string{supported: shared, unsupported: direct}[test.support]
			if last != "" && (len(s.seen) != 1 || s.seen[0].call != last) {
				t.Errorf("the second call went to %+v, want %s alone", s.seen, last)
			}
		})
	}
}

func TestDomainsThatAServerMayReturn(t *testing.T) {
	for _, domain := range []string{"e2b.app", "e2b.app:443", "eu-1.sandboxes.test", "localhost", "localhost:3000", "a.b.c.d", "1.example"} {
		if !validDomain(domain) {
			t.Errorf("%q is refused", domain)
		}
	}
	for _, domain := range []string{
		"", ".", "a..b", "e2b.app.", "-a.test", "a-.test", "a_b.test", "a b.test", "a.test/", "a.test/x", "a.test?x", "a.test#x", "a@b.test",
		"a.test:", "a.test:0", "a.test:65536", "a.test:http", "a.test:+80", "a.test:80:80", "127.0.0.1", "127.1", "2130706433", "0x7f000001",
		"0x7f.1", "[::1]", "::1", "fe80::1", "a.test\r\nX: y", "{id}.test", "%61.test", "ä.test",
		strings.Repeat("a.", 127) + "test", strings.Repeat("a", 64) + ".test",
	} {
		if validDomain(domain) {
			t.Errorf("%q is accepted", domain)
		}
	}
}

func TestEveryPlaceholderIsKnown(t *testing.T) {
	want := []string{"https://{port}-{id}.{domain}", "http://h/{id}/{port}", "http://h"}
	for _, ok := range want {
		if _, err := New(Config{SandboxURL: ok}); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	bad := []string{"https://{host}/", "https://h/{ID}", "https://h/{", "https://h/}", "https://h/{}", "{port}", "{domain}/{id}"}
	if i := slices.IndexFunc(bad, func(u string) bool { _, err := New(Config{SandboxURL: u}); return err == nil }); i >= 0 {
		t.Errorf("%q is accepted", bad[i])
	}
}
