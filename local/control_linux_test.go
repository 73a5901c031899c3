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
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestControlPlaneRefusesWithE2BsErrors(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	for _, tt := range []struct {
		name, method, path, body string
		status                   int
	}{
		{"no template", "POST", "/sandboxes", `{}`, 400},
		{"no JSON", "POST", "/v2/sandboxes", `{`, 400},
		{"a timeout that is no integer", "POST", "/sandboxes", `{"templateID":"x","timeout":1.5}`, 400},
		{"no object", "POST", "/sandboxes", `[]`, 400},
		{"too large", "POST", "/sandboxes", `{"templateID":"` + strings.Repeat("x", maxControlBody) + `"}`, 413},
		{"negative timeout", "POST", "/sandboxes", `{"templateID":"x","timeout":-1}`, 400},
		{"endless timeout", "POST", "/sandboxes", `{"templateID":"x","timeout":9223372036854775807}`, 400},
		{"auto pause", "POST", "/sandboxes", `{"templateID":"x","autoPause":true}`, 400},
		{"pause", "POST", "/sandboxes/" + b.ID + "/pause", ``, 400},
		{"connect unknown", "POST", "/sandboxes/nosuch/connect", `{"timeout":1}`, 404},
		{"timeout unknown", "POST", "/sandboxes/nosuch/timeout", `{"timeout":1}`, 404},
		{"delete unknown", "DELETE", "/sandboxes/nosuch", ``, 404},
		{"inspect unknown", "GET", "/sandboxes/nosuch", ``, 404},
		{"bad limit", "GET", "/v2/sandboxes?limit=0", ``, 400},
		{"unknown path", "GET", "/nope", ``, 404},
		{"wrong method", "PUT", "/sandboxes", ``, 405},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, text := c.with(t).call(t.Context(), nil, tt.method, tt.path, tt.body)
			var e struct {
				Code    int
				Message string
			}
			if err := json.Unmarshal([]byte(text), &e); err != nil || status != tt.status || e.Code != status || e.Message == "" || strings.Contains(e.Message, "Go ") {
				t.Errorf("got %d %s, want %d", status, text, tt.status)
			}
		})
	}
}

func TestSandboxEndsAtItsTimeout(t *testing.T) {
	s := newServer(t, Config{})
	c := newClient(t, s)
	b := c.create(map[string]any{"timeout": 300})
	sb := s.find(b.ID)

	// connect never shortens.
	if status, text := c.call(t.Context(), nil, "POST", "/v2/sandboxes/"+b.ID+"/connect", `{"timeout":1}`); status != 200 || !strings.Contains(text, b.Token) {
		t.Fatalf("connect: %d %s", status, text)
	}
	if left := time.Until(sb.claimed().end); left < 200*time.Second {
		t.Errorf("after connect it has %v left", left)
	}
	if status, _ := c.call(t.Context(), nil, "POST", "/sandboxes/"+b.ID+"/connect", `{"timeout":1000}`); status != 200 {
		t.Errorf("connect: %d", status)
	}
	if left := time.Until(sb.claimed().end); left < 900*time.Second {
		t.Errorf("after a longer connect it has %v left", left)
	}
	// timeout counts from now, and ends a run too.
	res := c.open(t.Context(), b, "POST", "/execute", `{"code":"import time\nprint('on', flush=True)\ntime.sleep(60)"}`)
	defer res.Body.Close()
	if status, _ := c.call(t.Context(), nil, "POST", "/sandboxes/"+b.ID+"/timeout", `{"timeout":0}`); status != 204 {
		t.Errorf("timeout: %d", status)
	}
	<-sb.gone
	if o := gather(res.Body); o.Err == nil || o.Ended {
		t.Errorf("the run of an ended sandbox: %v", o)
	}
	if status, _ := c.call(t.Context(), nil, "GET", "/sandboxes/"+b.ID, nil); status != 404 {
		t.Errorf("inspect after the end: %d", status)
	}
}

func TestListFiltersAndPages(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	for i := range 3 {
		c.create(map[string]any{"metadata": map[string]string{"n": fmt.Sprint(i), "app": "a&b=c"}})
	}
	list := func(query string) ([]listedSandbox, http.Header) {
		t.Helper()
		res := c.open(t.Context(), nil, "GET", query, nil)
		defer res.Body.Close()
		var entries []listedSandbox
		if err := json.NewDecoder(res.Body).Decode(&entries); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %v", query, res.StatusCode, err)
		}
		return entries, res.Header
	}
	filter := url.QueryEscape(url.Values{"n": {"1"}, "app": {"a&b=c"}}.Encode())
	for _, version := range []string{"", "/v2"} {
		if all, _ := list(version + "/sandboxes"); len(all) != 3 {
			t.Errorf("%s lists %d", version, len(all))
		}
		got, _ := list(version + "/sandboxes?metadata=" + filter)
		if len(got) != 1 || got[0].Metadata["n"] != "1" || got[0].State != "running" || got[0].EndAt.Before(got[0].StartedAt) {
			t.Errorf("%s filtered: %v", version, got)
		}
	}
	asSDKs := url.QueryEscape(url.Values{"n": {"1"}, "app": {url.QueryEscape("a&b=c")}}.Encode())
	if got, _ := list("/v2/sandboxes?metadata=" + asSDKs); len(got) != 1 || got[0].Metadata["n"] != "1" {
		t.Errorf("filtered as by the SDKs: %v", got)
	}
	if got, _ := list("/v2/sandboxes?metadata=n%3D9"); len(got) != 0 {
		t.Errorf("nothing matches, but %v", got)
	}
	if got, _ := list("/v2/sandboxes?state=paused"); len(got) != 0 {
		t.Errorf("none is paused, but %v", got)
	}
	if got, _ := list("/v2/sandboxes?state=running,paused"); len(got) != 3 {
		t.Errorf("running ones: %v", got)
	}
	first, header := list("/v2/sandboxes?limit=2")
	second, last := list("/v2/sandboxes?limit=2&nextToken=" + url.QueryEscape(header.Get("X-Next-Token")))
	if len(first) != 2 || len(second) != 1 || second[0].Metadata["n"] != "2" || last.Get("X-Next-Token") != "" {
		t.Errorf("pages %v and %v", first, second)
	}
}

func TestWarmSandboxIsHandedOutOnce(t *testing.T) {
	s := newServer(t, Config{Warm: 2})
	awaitWarm(t, s, 2)
	c := newClient(t, s)
	made := make(chan *box, 6)
	for range 6 {
		go func() { made <- c.create(nil) }()
	}
	seen := map[string]bool{}
	for range 6 {
		b := <-made
		if seen[b.ID] {
			t.Errorf("sandbox %s was handed out twice", b.ID)
		}
		seen[b.ID] = true
		c.want(b, "'mine' in globals(), globals().setdefault('mine', 1)", "(False, 1)")
	}
	awaitWarm(t, s, 2)
	var listed []listedSandbox
	_, text := c.call(t.Context(), nil, "GET", "/sandboxes", nil)
	if err := json.Unmarshal([]byte(text), &listed); err != nil || len(listed) != 6 {
		t.Errorf("the list has %d entries (%v): those that are kept ready are nobody's", len(listed), err)
	}
}

func TestDeadWarmSandboxIsNotHandedOut(t *testing.T) {
	s := newServer(t, Config{Warm: 1})
	awaitWarm(t, s, 1)
	for _, sb := range s.all() {
		sb.end()
		<-sb.gone
	}
	c := newClient(t, s)
	b := c.create(nil)
	c.want(b, "1", "1")
}

func TestPreloadedModulesAreThere(t *testing.T) {
	c := newClient(t, newServer(t, Config{Preload: []string{"fractions", "nosuchmodule"}}))
	c.want(c.create(nil), "import sys; 'fractions' in sys.modules", "True")
}

func TestFontsAreFoundOnceForAllSandboxes(t *testing.T) {
	s := newServer(t, Config{Warm: 1})
	for deadline := time.Now().Add(20 * time.Second); s.engine.seed.Load() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no list of fonts; is matplotlib installed? (apt install python3-matplotlib)")
		}
	}
	awaitWarm(t, s, 1) // else the second one could be what was started before the list was there
	c := newClient(t, s)
	c.create(nil)
	c.want(c.create(nil), `
import glob, os
[path] = glob.glob('/tmp/.matplotlib/fontlist-*.json')
before = os.stat(path).st_mtime_ns
import matplotlib.font_manager
os.stat(path).st_mtime_ns == before`, "True")
}

// TestMatplotlibThatHangsKeepsNoSandbox: it ends with the time that finding fonts
// may take.
func TestMatplotlibThatHangsKeepsNoSandbox(t *testing.T) {
	venv := virtualEnvironment(t, "matplotlib", "import time\nwhile True: time.sleep(1)\n")
	s := newServer(t, Config{Python: venv + "/bin/python"})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	s.findFonts(ctx)
	if ctx.Err() == nil || s.engine.seed.Load() != nil {
		t.Error("it did not hang")
	}
}
