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
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// recorder is a handler of events that hands them to the test.
type recorder struct{}

var recorded = make(chan caddy.Event, 100)

func (recorder) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "events.handlers.recorder", New: func() caddy.Module { return new(recorder) }}
}

func (recorder) Handle(_ context.Context, ev caddy.Event) error {
	recorded <- ev
	return nil
}

func init() { caddy.RegisterModule(recorder{}) }

// withRecorder adds the recorder to a configuration.
func withRecorder(t *testing.T, config string, events ...string) string {
	t.Helper()
	var tree map[string]map[string]any // admin, storage and apps are objects
	if err := json.Unmarshal([]byte(config), &tree); err != nil {
		t.Fatal(err)
	}
	tree["apps"]["events"] = map[string]any{"subscriptions": []any{map[string]any{
		"events": events, "modules": []string{moduleID}, "handlers": []any{map[string]any{"handler": "recorder"}},
	}}}
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEventsOfSandboxesReachCaddysEventsApp(t *testing.T) {
	f, model := newFakeE2B(t), newModel(t)
	socket := filepath.Join(shortTempDir(t), "socket")
	config, err := adapt(t, fmt.Sprintf(`{
	admin off
	persist_config off
}

http://localhost {
	bind unix/%s
	code_interpreter {
		sandbox e2b {
			api_key key
			api_url %s
			sandbox_url %s
		}
		sessions {
			max_per_identity 1
		}
	}
	reverse_proxy %s
}
`, socket, f.URL, f.URL, model.URL))
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load([]byte(withRecorder(t, config, eventCreated, eventDeleted, eventEvicted, eventFailing)), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
		drains.work.Wait()
	})
	next := func(name string) map[string]any {
		t.Helper()
		ev := <-recorded
		if ev.Name() != name || ev.Data["engine"] != "e2b" {
			t.Fatalf("event %s %v, want %s", ev.Name(), ev.Data, name)
		}
		return ev.Data
	}
	persist(t, socket, "one")
	created := next(eventCreated)
	if created["sandbox"] != <-f.created || len(created["session"].(string)) != 12 || len(created["identity"].(string)) != 12 {
		t.Errorf("a sandbox is created with %v", created)
	}
	persist(t, socket, "two")
	seen := make(map[string]map[string]any)
	for range 3 { // the old one's end and the new one's beginning do not wait for each other
		ev := <-recorded
		seen[ev.Name()] = ev.Data
	}
	if seen[eventEvicted]["session"] != created["session"] || seen[eventDeleted]["reason"] != "evicted" || seen[eventCreated] == nil {
		t.Errorf("an eviction is told as %v", seen)
	}
	f.refuse(http.StatusForbidden)
	for range 5 {
		persist(t, socket, "three")
	}
	for ev := range recorded {
		if ev.Name() == eventFailing {
			if ev.Data["error"] == "" {
				t.Errorf("the provider fails with %v", ev.Data)
			}
			break
		}
	}
}

func TestQueueKeepsOrderAndDropsWhatIsTooMuch(t *testing.T) {
	var q queue
	var mu sync.Mutex
	var order []int
	begun, hold := make(chan struct{}), make(chan struct{})
	q.add(func() {
		close(begun)
		<-hold
	})
	<-begun // it waits no more, but is waited for
	accepted := 0
	for i := range 2 * maxPendingEvents {
		if q.add(func() {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, i)
		}) {
			accepted++
		}
	}
	close(hold)
	q.work.Wait()
	if accepted != maxPendingEvents || len(order) != accepted {
		t.Errorf("%d of %d were taken, %d ran", accepted, 2*maxPendingEvents, len(order))
	}
	for i := range order {
		if order[i] != i {
			t.Fatalf("number %d ran as number %d", order[i], i)
		}
	}
	if !q.add(func() {}) {
		t.Error("an empty queue takes nothing")
	}
	q.work.Wait()
}

// early is a storage that looks for the events app before Caddy has loaded it.
type early struct{}

var found error // what it was told

func (early) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.storage.early", New: func() caddy.Module { return new(early) }}
}

func (early) Provision(ctx caddy.Context) error {
	_, found = newAnnouncer(ctx)
	return errors.New("this is all there is to try")
}

func init() { caddy.RegisterModule(early{}) }

func TestEventsAppThatDoesNotLoadIsNotTakenForNone(t *testing.T) {
	for apps, want := range map[string]string{
		`{"events": {"subscriptions": [{"handlers": [{"handler": "unknown"}]}]}}`: "unknown",
		`{}`: "",
	} {
		var config caddy.Config
		if err := json.Unmarshal([]byte(`{"storage": {"module": "early"}, "apps": `+apps+`}`), &config); err != nil {
			t.Fatal(err)
		}
		if err := caddy.Validate(&config); err == nil {
			t.Fatal("nothing was tried")
		}
		if (found == nil) != (want == "") || found != nil && !strings.Contains(found.Error(), want) {
			t.Errorf("with the apps %s: %v", apps, found)
		}
	}
}
