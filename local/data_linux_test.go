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
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// answers are the recorded ones of E2B's code interpreter, but for languages that
// it does not have, which it answers with 500.
func TestDataPlaneErrorsAreE2Bs(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	for _, tt := range []struct {
		name, method, path string
		body               any
		status             int
		want               string
	}{
		{"unknown context", "POST", "/execute", map[string]any{"code": "1", "context_id": "nope"}, 404, "Context nope not found"},
		{"context and language", "POST", "/execute", map[string]any{"code": "1", "context_id": "nope", "language": "python"}, 400, "Only one of context_id or language can be provided"},
		{"unknown language", "POST", "/execute", map[string]any{"code": "1", "language": "cobol"}, 400, `Language "cobol" is not available in this sandbox; use python or bash`},
		{"unknown language of a context", "POST", "/contexts", map[string]any{"language": "cobol"}, 400, `Language "cobol" is not available in this sandbox; use python or bash`},
		{"no code", "POST", "/execute", `{"nocode":1}`, 422, `{"detail":[{"type":"missing","loc":["body","code"],"msg":"Field required","input":{"nocode":1}}]}`},
		{"code is no string", "POST", "/execute", `{"code":1}`, 422, `{"detail":[{"type":"string_type","loc":["body","code"],"msg":"Input should be a valid string","input":"number"}]}`},
		{"the body is no object", "POST", "/execute", `[]`, 422, `{"detail":[{"type":"model_attributes_type","loc":["body"],"msg":"Input should be a valid dictionary or object to extract fields from","input":"array"}]}`},
		{"variables are no object", "POST", "/execute", `{"code":"1","env_vars":[]}`, 422, `{"detail":[{"type":"dict_type","loc":["body","env_vars"],"msg":"Input should be a valid dictionary","input":"array"}]}`},
		{"no JSON", "POST", "/execute", `{`, 422, `{"detail":[{"type":"json_invalid","loc":["body"],"msg":"JSON decode error","input":{}}]}`},
		{"too large", "POST", "/execute", `{"code":"` + strings.Repeat("x", maxDataBody) + `"}`, 413, "The body is larger than 16777216 bytes"},
		{"health", "GET", "/health", nil, 200, `"OK"`},
		{"unknown path", "GET", "/nope", nil, 404, `{"detail":"Not Found"}`},
		{"wrong method", "GET", "/execute", nil, 405, `{"detail":"Method Not Allowed"}`},
		{"restart unknown", "POST", "/contexts/nope/restart", nil, 404, "Context nope not found"},
		{"remove unknown", "DELETE", "/contexts/nope", nil, 404, "Context nope not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := c.with(t)
			res := c.open(t.Context(), b, tt.method, tt.path, tt.body)
			res.Body.Close()
			status, text := c.call(t.Context(), b, tt.method, tt.path, tt.body)
			if status != tt.status || text != tt.want {
				t.Errorf("got %d %s\nwant %d %s", status, text, tt.status, tt.want)
			}
			if allow := res.Header.Get("Allow"); status == 405 && allow != "POST" {
				t.Errorf("Allow is %q", allow)
			}
		})
	}
	c.want(b, "1+1", "2")
}

func TestDataPlaneReachesOnlyWhatIsThere(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	gone := `{"sandboxId":"nosuch","message":"The sandbox was not found","code":502}`
	if status, text := c.call(t.Context(), &box{ID: "nosuch"}, "POST", "/execute", `{"code":"1"}`); status != 502 || text != gone {
		t.Errorf("unknown sandbox: %d %s", status, text)
	}
	if status, text := c.call(t.Context(), &box{ID: b.ID, Token: "wrong"}, "GET", "/health", nil); status != 401 || !strings.Contains(text, `"code":401`) {
		t.Errorf("wrong token: %d %s", status, text)
	}
	if status, _ := c.call(t.Context(), &box{ID: b.ID}, "GET", "/health", nil); status != 401 {
		t.Errorf("no token: %d", status)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://3000-"+b.ID+".local.test/health", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("E2B-Traffic-Access-Token", b.Traffic)
	for host, want := range map[string]int{agentPort + "-" + b.ID + ".local.test": 204, "3000-" + b.ID + ".local.test": 502, codePort + "-" + b.ID + ".local.test:80": 200, codePort + "-nosuch.local.test": 502} {
		req.URL.Host, req.Host = host, host
		res, err := c.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("host %s: %d, want %d", host, res.StatusCode, want)
		}
	}
	req.URL.Path = "/files"
	req.URL.Host, req.Host = agentPort+"-"+b.ID+".local.test", agentPort+"-"+b.ID+".local.test"
	res, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusNotImplemented {
		t.Errorf("files of the agent: %d", res.StatusCode)
	}
	c.remove(b)
	if status, text := c.call(t.Context(), b, "POST", "/execute", `{"code":"1"}`); status != 502 || !strings.Contains(text, "The sandbox was not found") {
		t.Errorf("removed sandbox: %d %s", status, text)
	}
}

func TestContextsLiveBesideEachOther(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	c.want(b, "x = 'default'; x", "default")

	status, text := c.call(t.Context(), b, "POST", "/contexts", map[string]any{"cwd": "/tmp", "language": "Python"})
	var made contextEntry
	if err := json.Unmarshal([]byte(text), &made); status != 200 || err != nil || made.Language != "python" || made.Cwd != "/tmp" {
		t.Fatalf("create: %d %s", status, text)
	}
	in := func(code string) outcome {
		return c.runWith(t.Context(), b, map[string]any{"code": code, "context_id": made.ID})
	}
	if o := in("import os\nos.getcwd(), 'x' in globals()"); o.Result != "('/tmp', False)" || o.Count != 1 {
		t.Errorf("in the context: %v", o)
	}
	if _, text := c.call(t.Context(), b, "GET", "/contexts", nil); strings.Count(text, `"language":"python"`) != 2 || !strings.HasPrefix(text, `[{"id":"`) || !strings.Contains(text, `"cwd":"/home/user"},`) {
		t.Errorf("list: %s", text)
	}
	if status, text := c.call(t.Context(), b, "POST", "/contexts/"+made.ID+"/restart", nil); status != 200 || text != "null" {
		t.Errorf("restart: %d %s", status, text)
	}
	if o := in("import os; os.getcwd()"); o.Result != "/home/user" || o.Count != 1 {
		t.Errorf("after the restart: %v", o)
	}
	if status, text := c.call(t.Context(), b, "DELETE", "/contexts/"+made.ID, nil); status != 200 || text != "null" {
		t.Errorf("remove: %d %s", status, text)
	}
	if o := in("1"); o.Err == nil || !strings.Contains(o.Err.Error(), "404") {
		t.Errorf("removed context: %v", o)
	}
	c.want(b, "x", "default")
}

func TestOneContextBearsManyOperationsAtOnce(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	within(t, answerTimeout/2, "all of them", func() {
		for range 5 {
			_, text := c.call(t.Context(), b, "POST", "/contexts", map[string]any{})
			var made contextEntry
			if err := json.Unmarshal([]byte(text), &made); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			var calls sync.WaitGroup
			for i := range 8 {
				method, path := "POST", "/contexts/"+made.ID+"/restart"
				if i == 5 {
					method, path = "DELETE", "/contexts/"+made.ID
				}
				calls.Go(func() {
					if status, text := c.call(t.Context(), b, method, path, nil); status != 200 && status != 404 {
						t.Errorf("%s %s: %d %s", method, path, status, text)
					}
				})
			}
			calls.Wait()
		}
	})
	c.want(b, "'alive'", "alive")
}

func TestBashRunsInItsOwnContext(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	c.want(b, "open('note', 'w').write('from python'); None", "")
	o := c.runWith(t.Context(), b, map[string]any{"code": "cat note; echo; echo $((6*7)) | tr 4 4; echo oops >&2", "language": "bash"})
	if o.Stdout != "from python\n42\n" || o.Stderr != "oops\n" || !o.Ended {
		t.Errorf("bash: %v", o)
	}
}

func TestEnvironmentVariablesHoldForTheirRun(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(map[string]any{"envVars": map[string]string{"EVERY": "always", "BOTH": "sandbox"}})
	o := c.runWith(t.Context(), b, map[string]any{
		"code":     "import os; [os.environ.get(k) for k in ('EVERY', 'BOTH', 'ONCE')]",
		"env_vars": map[string]string{"ONCE": "now", "BOTH": "run"},
	})
	if o.Result != "['always', 'run', 'now']" {
		t.Errorf("with variables: %v", o)
	}
	c.want(b, "[os.environ.get(k) for k in ('EVERY', 'BOTH', 'ONCE')]", "['always', 'sandbox', None]")
}

func TestEnvironmentVariablesOfTheSandboxAreTheCodesToChange(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(map[string]any{"envVars": map[string]string{"CHANGED": "first", "DELETED": "first"}})
	c.want(b, "import os; os.environ['CHANGED'] += ', second'; del os.environ['DELETED']", "")
	c.want(b, "[os.environ.get(k) for k in ('CHANGED', 'DELETED')]", "['first, second', None]")
	o := c.runWith(t.Context(), b, map[string]any{"code": "os.environ['CHANGED']", "env_vars": map[string]string{"CHANGED": "run"}})
	if o.Result != "run" {
		t.Errorf("with a variable of the run: %v", o)
	}
	c.want(b, "os.environ['CHANGED']", "first, second")
}

func TestOneRunAtATimeInAContext(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	c.want(b, "order = []", "")
	results := make(chan outcome, 3)
	for i := range 3 {
		go func() {
			results <- c.runWith(t.Context(), b, map[string]any{"code": "import time\norder.append('in'); time.sleep(.02); order.append('out'); " + string(rune('0'+i))})
		}()
	}
	for range 3 {
		if o := <-results; !o.Ended || o.Err != nil || o.Error != "" {
			t.Errorf("run: %v", o)
		}
	}
	c.want(b, "order == ['in', 'out'] * 3", "True")
}

func TestSilenceIsFilledWithKeepalives(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as the interval")
	}
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	res := c.open(t.Context(), b, "POST", "/execute", map[string]any{"code": "import time; time.sleep(5.3)"})
	defer res.Body.Close()
	var text strings.Builder
	buf := make([]byte, 1000)
	within(t, 2*keepaliveInterval+5*time.Second, "the run", func() {
		for {
			n, err := res.Body.Read(buf)
			text.Write(buf[:n])
			if err != nil {
				return
			}
		}
	})
	if n := strings.Count(text.String(), `"keepalive"`); n < 1 {
		t.Errorf("%d keepalives in %s", n, text.String())
	}
	if res.Header.Get("Content-Type") != "" {
		t.Errorf("Content-Type is %q; E2B sends none", res.Header.Get("Content-Type"))
	}
}
