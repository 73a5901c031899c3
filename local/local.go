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
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Config says what a Server's sandboxes are like. The zero value is usable.
type Config struct {
	// Python is the interpreter, a path or a name to be found in PATH. Default:
	// /usr/bin/python3, then python3 in PATH. Shims, virtual environments, pyenv
	// and conda are resolved.
	Python string
	// Memory bounds the resident memory of a sandbox's processes together, in
	// bytes. Default 1 GiB. Files do not count.
	Memory int64
	// Disk bounds /home/user, /tmp and /dev/shm of a sandbox, each, in bytes.
	// Default 256 MiB. They are held in memory.
	Disk int64
	// Processes bounds the processes and threads of a sandbox. Default 64.
	Processes int
	// Warm is how many sandboxes are kept ready. Default 0.
	Warm int
	// Preload names modules that are imported before a sandbox is handed out.
	Preload []string
	// MaxRead bounds what one execution may print, in bytes of the protocol; then
	// it is stopped. Default 16 MiB.
	MaxRead int64
	// APIKey is what control plane calls must carry as X-API-Key. Empty: none is
	// asked for, which is right in process only.
	APIKey string
	// Logger is told of sandboxes that fail. Nil: nobody is.
	Logger *zap.Logger
}

// Defaults of Config.
const (
	DefaultMemory    = 1 << 30
	DefaultDisk      = 256 << 20
	DefaultProcesses = 64
	DefaultMaxRead   = 16 << 20
)

// Smallest limits under which Python starts.
const (
	MinMemory    = 64 << 20 // with an ordinary import
	MinDisk      = 1 << 20
	MinProcesses = 4 // the interpreter, its helpers, and one for the code
)

// Server is an E2B-shaped http.Handler over sandboxes of this machine. It is safe
// for concurrent use.
type Server struct {
	cfg     Config
	log     *zap.Logger
	engine  *engine
	control *http.ServeMux
	data    *http.ServeMux

	mu        sync.Mutex
	sandboxes map[string]*sandbox // handed out, by id
	warm      map[*sandbox]bool   // ready, handed out to nobody
	starting  int                 // on their way into warm
	closed    bool

	ctx    context.Context // ends with Close; for what no request asked for
	cancel context.CancelFunc

	// work counts handlers and goroutines; nothing joins once closed is set.
	work sync.WaitGroup
}

// New resolves Python, finds bubblewrap and runs one line of Python in the full
// set-up. Its error names what is missing and what to do about it. There is no
// fallback to less isolation.
func New(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	l := limits{memory: cfg.Memory, disk: cfg.Disk, processes: cfg.Processes}
	engine, err := newEngine(ctx, cfg.Python, l)
	if err != nil {
		return nil, fmt.Errorf("sandbox local: %w", err)
	}
	s := &Server{
		cfg:       cfg,
		log:       cfg.Logger,
		engine:    engine,
		sandboxes: map[string]*sandbox{},
		warm:      map[*sandbox]bool{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.control, s.data = s.controlRoutes(), s.dataRoutes()
	s.engine.sweep(s.log)
	if err := s.selfTest(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox local: %w", err), s.Close())
	}
	s.work.Go(s.watchdog)
	s.fillWarm()
	if cfg.Warm > 0 {
		s.work.Go(s.learnFonts)
	}
	s.log.Info("code runs on this machine", zap.String("engine", s.engine.String()))
	return s, nil
}

// complete checks the configuration and sets its defaults.
func (c *Config) complete() error {
	if c.Memory == 0 {
		c.Memory = DefaultMemory
	}
	if c.Disk == 0 {
		c.Disk = DefaultDisk
	}
	if c.Processes == 0 {
		c.Processes = DefaultProcesses
	}
	if c.MaxRead == 0 {
		c.MaxRead = DefaultMaxRead
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	for _, limit := range []struct {
		name       string
		value, min int64
	}{
		{"memory", c.Memory, MinMemory},
		{"disk", c.Disk, MinDisk},
		{"processes", int64(c.Processes), MinProcesses},
		{"warm", int64(c.Warm), 0},
		{"max_read", c.MaxRead, 1},
	} {
		if limit.value < limit.min {
			return fmt.Errorf("sandbox local: %s is %d; the least is %d", limit.name, limit.value, limit.min)
		}
	}
	return nil
}

// selfTest runs a line of Python as a caller's would run.
func (s *Server) selfTest(ctx context.Context) error {
	sb, err := s.launch(ctx)
	if err != nil {
		return explain(err)
	}
	defer sb.end()
	run, err := sb.driver.execute(sb.executeCommand(sb.kernel(""), "print(1)", nil))
	if err != nil {
		return err
	}
	var printed strings.Builder
	for {
		select {
		case e := <-run.events:
			if e.kind != kindEnd {
				var said struct {
					Text, Name, Value string // of output, and of an error
				}
				if err := json.Unmarshal(e.body, &said); err != nil {
					return fmt.Errorf("the self-test said %.300q: %w", e.body, err)
				}
				printed.WriteString(said.Text + said.Name + said.Value)
				continue
			}
			if printed.String() != "1\n" {
				return fmt.Errorf("the self-test's print(1) printed %.300q", printed.String())
			}
			return nil
		case <-sb.gone:
			return fmt.Errorf("the self-test's sandbox ended: %s", sb.process.why())
		case <-ctx.Done():
			return fmt.Errorf("the self-test did not end: %w", ctx.Err())
		case <-time.After(answerTimeout):
			return fmt.Errorf("the self-test did not end within %v", answerTimeout)
		}
	}
}

// ServeHTTP answers calls of both planes. Those of the data plane carry the
// headers E2b-Sandbox-Id and E2b-Sandbox-Port, or go to the host
// <port>-<sandbox>.<domain>.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.join() {
		controlError(w, http.StatusServiceUnavailable, "the server is closed")
		return
	}
	defer s.work.Done()
	if id, port, ok := dataPlane(r); ok {
		s.serveData(w, r, id, port)
		return
	}
	s.serveControl(w, r)
}

// Close ends every sandbox and waits for the end of all handlers and goroutines.
// It may be called more than once.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.cancel()
	for _, sb := range s.sandboxes {
		sb.end()
	}
	for sb := range s.warm {
		sb.end()
	}
	s.mu.Unlock()
	s.work.Wait()
	s.engine.close()
	return nil
}

// join counts the caller as work, unless the server is closed.
func (s *Server) join() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	return true
}
