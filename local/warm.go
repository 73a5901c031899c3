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
	"time"

	"go.uber.org/zap"
)

// take returns a sandbox for a caller: one that is ready, else a new one.
func (s *Server) take(ctx context.Context) (*sandbox, error) {
	s.mu.Lock()
	for sb := range s.warm {
		delete(s.warm, sb) // whoever takes it out is the only one to have it
		s.mu.Unlock()
		s.fillWarm()
		return sb, nil
	}
	s.mu.Unlock()
	return s.launch(ctx)
}

// handOut makes a sandbox the caller's.
func (s *Server) handOut(sb *sandbox, c claim, timeout time.Duration) error {
	c.started = time.Now()
	c.end = c.started.Add(timeout)
	c.timer = time.AfterFunc(timeout, sb.end)
	sb.mu.Lock()
	sb.claim = c
	sb.mu.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		sb.end()
		return errEngineClosed
	}
	select {
	case <-sb.driver.done: // died while it waited; watch does not find it in the table
		c.timer.Stop()
		return sb.driver.ended()
	default:
	}
	s.sandboxes[sb.id] = sb
	return nil
}

// fillWarm starts, in the background, as many sandboxes as are missing.
func (s *Server) fillWarm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed && len(s.warm)+s.starting < s.cfg.Warm {
		s.starting++
		s.work.Go(s.startWarm)
	}
}

// startWarm starts one. A failure is logged and left: the next creation tries
// again, and tells its caller.
func (s *Server) startWarm() {
	sb, err := s.launch(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting--
	switch {
	case err != nil && !s.closed:
		s.log.Error("starting a sandbox ahead of its use", zap.Error(err))
	case err != nil:
	case s.closed:
		sb.end()
	default:
		select {
		case <-sb.driver.done:
		default:
			s.warm[sb] = true
		}
	}
}
