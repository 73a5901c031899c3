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
	"errors"
	"net"
	"net/http"
	"time"
)

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
)

// Serve answers E2B's clients on a listener until ctx ends, and closes it. It asks
// for an API key: whoever reaches the port may run code.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if s.cfg.APIKey == "" {
		return errors.Join(errors.New("serving sandboxes on a port needs an API key"), l.Close())
	}
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout, // an execution may be silent for as long as it likes
	}
	stopped := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(stopped)
		_ = server.Close() // the listener's own error: it is closed either way
	})()
	err := server.Serve(l)
	if ctx.Err() != nil {
		<-stopped
		return nil
	}
	return err
}
