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
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// shortTempDir is a directory for a socket, whose path may not be long.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ci")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// load runs a Caddyfile in this process until the test ends.
func load(t *testing.T, caddyfile string) {
	t.Helper()
	reload(t, caddyfile)
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
		drains.work.Wait()
	})
}

func reload(t *testing.T, caddyfile string) {
	t.Helper()
	config, err := adapt(t, caddyfile)
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
}

// post sends a chat request with the tool and returns the answer.
func post(t *testing.T, socket, session string) (string, error) {
	t.Helper()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}
	r := chat(session).WithContext(t.Context())
	r.RequestURI = ""
	r.URL.Scheme, r.URL.Host, r.Host = "http", "localhost", "localhost"
	response, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// persist posts until Caddy has taken the connection: it drops those that
// arrive in the moment of a reload, whatever its handlers are.
func persist(t *testing.T, socket, session string) string {
	t.Helper()
	answer, err := post(t, socket, session)
	for range 100 {
		if err == nil {
			break
		}
		answer, err = post(t, socket, session)
	}
	if err != nil {
		t.Error(err)
	}
	return answer
}

// model serves upstream on a port.
type model struct {
	*httptest.Server
	turns atomic.Int64
}

func newModel(t *testing.T) *model {
	t.Helper()
	m := new(model)
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.turns.Add(1)
		if err := new(upstream).ServeHTTP(w, r); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(m.Close)
	return m
}

// TestReloadUnderLoad reloads with changed limits, and with a configuration
// that fails behind the handler, while sessions are used.
func TestReloadUnderLoad(t *testing.T) {
	f, model := newFakeE2B(t), newModel(t)
	socket := filepath.Join(shortTempDir(t), "socket")
	config := func(limit int) string {
		return fmt.Sprintf(`{
	admin off
	persist_config off
}

http://localhost {
	bind unix/%s
	code_interpreter {
		sandbox e2b {
			api_key e2b_test
			api_url %s
			sandbox_url %s
		}
		sessions {
			max %d
		}
	}
	reverse_proxy %s
}
`, socket, f.URL, f.URL, limit, model.URL)
	}
	load(t, config(100))

	const sessions, requests = 4, 10
	var clients sync.WaitGroup
	for i := range sessions {
		clients.Go(func() {
			for range requests {
				if answer := persist(t, socket, fmt.Sprint("session", i)); !strings.Contains(answer, "result: ok") {
					t.Errorf("the answer is %s", answer)
				}
			}
		})
	}
	for i := range 10 {
		reload(t, config(101+i))
		broken, err := adapt(t, config(200))
		if err != nil {
			t.Fatal(err)
		}
		broken = strings.ReplaceAll(broken, `"handler": "reverse_proxy"`, `"handler": "nonexistent"`)
		if err := caddy.Load([]byte(broken), true); err == nil {
			t.Error("a handler that does not exist is accepted")
		}
	}
	clients.Wait()
	if turns := model.turns.Load(); turns != 2*sessions*requests {
		t.Errorf("%d turns for %d requests: some were cut off under way", turns, sessions*requests)
	}
	if created := len(f.created); created != sessions {
		t.Errorf("%d sandboxes for %d sessions", created, sessions)
	}
	if deleted := len(f.deleted); deleted != 0 {
		t.Errorf("%d sandboxes deleted by reloads", deleted)
	}
	backends.Range(func(key, value any) bool {
		if n := len(value.(*backend).leases); n != 1 {
			t.Errorf("%d leases are left, want the loaded configuration's", n)
		}
		return true
	})
}
