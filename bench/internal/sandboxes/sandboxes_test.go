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

package sandboxes

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func call(t *testing.T, s *Server, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(`{}`)))
	return w
}

func TestSandboxLivesFromCreationToDeletion(t *testing.T) {
	s := New(0)
	if w := call(t, s, http.MethodPost, "/sandboxes"); w.Code != http.StatusCreated || !strings.Contains(w.Body.String(), `"sandboxID":"sandbox1"`) {
		t.Errorf("create: %d %s", w.Code, w.Body)
	}
	if w := call(t, s, http.MethodPost, "/sandboxes/sandbox1/timeout"); w.Code != http.StatusNoContent {
		t.Errorf("timeout: %d", w.Code)
	}
	if w := call(t, s, http.MethodGet, "/v2/sandboxes?metadata=a%3Db"); w.Code != http.StatusOK || w.Body.String() != "[]" {
		t.Errorf("list: %d %s", w.Code, w.Body)
	}
	if w := call(t, s, http.MethodPost, "/execute"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "end_of_execution") {
		t.Errorf("execute: %d %s", w.Code, w.Body)
	}
	if s.Alive.Load() != 1 || s.Executions.Load() != 1 {
		t.Errorf("%d sandboxes, %d executions", s.Alive.Load(), s.Executions.Load())
	}
	if w := call(t, s, http.MethodDelete, "/sandboxes/sandbox1"); w.Code != http.StatusNoContent || s.Alive.Load() != 0 {
		t.Errorf("delete: %d, %d left", w.Code, s.Alive.Load())
	}
}

func TestCreationTakesItsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		call(t, New(300*time.Millisecond), http.MethodPost, "/v2/sandboxes")
		if took := time.Since(start); took != 300*time.Millisecond {
			t.Errorf("creation took %s", took)
		}
	})
}
