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
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// The languages that a context may have.
const (
	python = "python"
	bash   = "bash"
)

// sandboxHome is the working directory of a sandbox and of each context.
const sandboxHome = "/home/user"

// sandbox is one isolated machine of a caller.
type sandbox struct {
	id           string
	token        string // of the data plane, as is the next
	trafficToken string
	process      *process
	driver       *driver
	gone         chan struct{} // closed when nothing of it is left
	running      atomic.Int32  // executions

	looksOver int // the watchdog's alone

	mu       sync.Mutex
	kernels  []*kernel // oldest first
	defaults map[string]*kernel
	reason   string // why a process of it was killed, for the model
	claim    claim
}

// claim is what a caller says on creation.
type claim struct {
	template     string
	metadata     map[string]string
	env          map[string]string
	started, end time.Time
	timer        *time.Timer // ends the sandbox
}

// kernel is one context: an interpreter with variables of its own.
type kernel struct {
	id, language, cwd string
	turn              chan struct{} // holds one token while a run is on
	removed           chan struct{}
	asking            sync.Mutex // held while the driver is asked about the context
}

// launch starts a sandbox with its default context.
func (s *Server) launch(ctx context.Context) (*sandbox, error) {
	if !s.join() {
		return nil, errEngineClosed
	}
	defer s.work.Done()
	process, err := s.engine.start()
	if err != nil {
		return nil, err
	}
	sb := &sandbox{
		id:           newID(),
		token:        newID(),
		trafficToken: newID(),
		process:      process,
		driver:       newDriver(process.commands, process.events),
		gone:         make(chan struct{}),
		defaults:     map[string]*kernel{},
	}
	s.work.Go(func() { s.watch(sb) })
	s.work.Go(func() { sb.driver.hurry(process.done) })
	defer context.AfterFunc(ctx, sb.end)()
	defer context.AfterFunc(s.ctx, sb.end)() // Close finds it in no table yet
	if err := s.prepare(sb); err != nil {
		sb.end()
		<-sb.gone
		if err := cmp.Or(ctx.Err(), s.ctx.Err()); err != nil {
			return nil, err
		}
		if why := process.why(); why != "" {
			return nil, &startError{complaint: why, err: err}
		}
		return nil, err
	}
	return sb, nil
}

// prepare waits for the driver and makes the default context.
func (s *Server) prepare(sb *sandbox) error {
	ready, err := sb.driver.start(s.cfg.Preload, answerTimeout)
	if err != nil {
		return err
	}
	for module, why := range ready.PreloadErrors {
		s.log.Warn("a module to preload cannot be imported", zap.String("module", module), zap.String("reason", why))
	}
	_, err = sb.defaultKernel(python)
	return err
}

// watch sees a sandbox to its end: the driver's silence is the end of everything.
func (s *Server) watch(sb *sandbox) {
	sb.driver.listen()
	sb.process.kill()
	sb.process.release()
	s.forget(sb)
	close(sb.gone)
}

// forget takes a sandbox that has ended out of the tables.
func (s *Server) forget(sb *sandbox) {
	s.mu.Lock()
	delete(s.sandboxes, sb.id)
	delete(s.warm, sb)
	s.mu.Unlock()
	sb.mu.Lock()
	if sb.claim.timer != nil {
		sb.claim.timer.Stop()
	}
	sb.mu.Unlock()
}

// end ends a sandbox; gone tells when it has happened.
func (sb *sandbox) end() { sb.process.signalEnd() }

// extend sets the end of a sandbox's life to timeout from now. Without shorten an
// earlier end stays what it is.
func (sb *sandbox) extend(timeout time.Duration, shorten bool) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	end := time.Now().Add(timeout)
	if !shorten && end.Before(sb.claim.end) {
		return
	}
	sb.claim.end = end
	sb.claim.timer.Reset(timeout)
}

// claimed returns what the caller said, as a copy.
func (sb *sandbox) claimed() claim {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return sb.claim
}

// kernel returns a context by its id, "" for the default one, or nil.
func (sb *sandbox) kernel(id string) *kernel {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if id == "" {
		return sb.defaults[python]
	}
	for _, k := range sb.kernels {
		if k.id == id {
			return k
		}
	}
	return nil
}

// defaultKernel returns the context that runs a language when none is named, and
// makes it when there is none.
func (sb *sandbox) defaultKernel(language string) (*kernel, error) {
	sb.mu.Lock()
	k := sb.defaults[language]
	sb.mu.Unlock()
	if k != nil {
		return k, nil
	}
	k, err := sb.newKernel(language, sandboxHome)
	if err != nil {
		return nil, err
	}
	sb.mu.Lock()
	if other := sb.defaults[language]; other != nil { // made at the same time
		sb.mu.Unlock()
		return other, sb.removeKernel(k)
	}
	sb.defaults[language] = k
	sb.mu.Unlock()
	return k, nil
}

// newKernel makes a context.
func (sb *sandbox) newKernel(language, cwd string) (*kernel, error) {
	k := &kernel{id: newID(), language: language, cwd: cwd, turn: make(chan struct{}, 1), removed: make(chan struct{})}
	create := command{Op: "create", Context: k.id, Language: language, Cwd: cwd}
	if _, err := sb.driver.ask(create, answerTimeout); err != nil {
		return nil, err
	}
	sb.mu.Lock()
	defer sb.mu.Unlock()
	sb.kernels = append(sb.kernels, k)
	return k, nil
}

// removeKernel ends a context and whatever it runs.
func (sb *sandbox) removeKernel(k *kernel) error {
	sb.mu.Lock()
	found := false
	for i, other := range sb.kernels {
		if other == k {
			sb.kernels = append(sb.kernels[:i:i], sb.kernels[i+1:]...)
			found = true
			break
		}
	}
	if sb.defaults[k.language] == k {
		delete(sb.defaults, k.language)
	}
	sb.mu.Unlock()
	if !found {
		return nil // somebody else did
	}
	close(k.removed)
	k.asking.Lock()
	defer k.asking.Unlock()
	_, err := sb.driver.ask(command{Op: "remove", Context: k.id}, answerTimeout)
	return err
}

// restartKernel gives a context a new interpreter. It returns false when the context
// has been removed meanwhile.
func (sb *sandbox) restartKernel(k *kernel) (bool, error) {
	k.asking.Lock()
	defer k.asking.Unlock()
	select {
	case <-k.removed:
		return false, nil
	default:
		_, err := sb.driver.ask(command{Op: "restart", Context: k.id}, answerTimeout)
		return true, err
	}
}

// executeCommand is the driver's command for code in a context.
func (sb *sandbox) executeCommand(k *kernel, code string, env map[string]string) command {
	return command{
		Op: "execute", Context: k.id, Run: newID(), Code: &code, Language: k.language,
		EnvVars: env, SandboxEnvVars: sb.claimed().env,
	}
}

// newID returns a name that nobody can guess: E2B's clients allow letters, digits,
// dashes and underscores.
func newID() string { return strings.ToLower(rand.Text()) }

// isRefused tells the driver's no from its failure.
func isRefused(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused)
}
