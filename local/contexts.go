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
	"fmt"
	"net/http"
	"path"
	"strings"

	"go.uber.org/zap"
)

// contextEntry is a context as E2B shows it.
type contextEntry struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	Cwd      string `json:"cwd"`
}

// createContext answers POST /contexts.
func (s *Server) createContext(w http.ResponseWriter, r *http.Request, sb *sandbox) {
	var body struct {
		Language string `json:"language"`
		Cwd      string `json:"cwd"`
	}
	if !readData(w, r.Body, &body) {
		return
	}
	language, ok := languageOf(w, body.Language)
	if !ok {
		return
	}
	if body.Cwd == "" {
		body.Cwd = sandboxHome
	}
	if !path.IsAbs(body.Cwd) {
		body.Cwd = path.Join(sandboxHome, body.Cwd)
	}
	k, err := sb.newKernel(language, body.Cwd)
	if err != nil {
		s.contextFailed(w, sb, "Failed to create context", err)
		return
	}
	writeJSON(w, http.StatusOK, contextEntry{k.id, k.language, k.cwd})
}

// listContexts answers GET /contexts, the default ones among them.
func (s *Server) listContexts(w http.ResponseWriter, _ *http.Request, sb *sandbox) {
	sb.mu.Lock()
	list := make([]contextEntry, 0, len(sb.kernels))
	for _, k := range sb.kernels {
		list = append(list, contextEntry{k.id, k.language, k.cwd})
	}
	sb.mu.Unlock()
	writeJSON(w, http.StatusOK, list)
}

// restartContext answers POST /contexts/{id}/restart. What the context runs ends.
func (s *Server) restartContext(w http.ResponseWriter, r *http.Request, sb *sandbox) {
	k := namedKernel(w, r, sb)
	if k == nil {
		return
	}
	there, err := sb.restartKernel(k)
	switch {
	case err != nil:
		s.contextFailed(w, sb, "Failed to restart context", err)
		return
	case !there:
		unknownContext(w, k.id)
		return
	}
	writeJSON(w, http.StatusOK, nil)
}

// removeContext answers DELETE /contexts/{id}. What the context runs ends.
func (s *Server) removeContext(w http.ResponseWriter, r *http.Request, sb *sandbox) {
	k := namedKernel(w, r, sb)
	if k == nil {
		return
	}
	if err := sb.removeKernel(k); err != nil {
		s.contextFailed(w, sb, "Failed to remove context", err)
		return
	}
	writeJSON(w, http.StatusOK, nil)
}

// contextFailed answers for an operation on a context that did not work: with the
// driver's reason when it refused, else as a sandbox that is no more.
func (s *Server) contextFailed(w http.ResponseWriter, sb *sandbox, what string, err error) {
	if isRefused(err) {
		plainError(w, http.StatusBadRequest, what+": "+err.Error())
		return
	}
	s.log.Warn("a sandbox that does not answer is ended", zap.String("sandbox", sb.id), zap.Error(err))
	sb.end()
	goneError(w, sb.id)
}

// namedKernel returns the context that a path names, or answers that it is unknown.
func namedKernel(w http.ResponseWriter, r *http.Request, sb *sandbox) *kernel {
	id := r.PathValue("context")
	k := sb.kernel(id)
	if k == nil {
		unknownContext(w, id)
	}
	return k
}

func unknownContext(w http.ResponseWriter, id string) {
	plainError(w, http.StatusNotFound, fmt.Sprintf("Context %s not found", id))
}

// languageOf returns the language of a request, or answers that there is none such.
func languageOf(w http.ResponseWriter, name string) (string, bool) {
	switch language := strings.ToLower(strings.TrimSpace(name)); language {
	case "":
		return python, true
	case python, bash:
		return language, true
	default:
		plainError(w, http.StatusBadRequest, fmt.Sprintf("Language %q is not available in this sandbox; use python or bash", name))
		return "", false
	}
}
