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
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/local"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// selfTestTimeout bounds the start of local sandboxes while a configuration is
// loaded, during which Caddy can load no other.
const selfTestTimeout = 30 * time.Second

// inProcess is where the client of local sandboxes believes them to be.
const inProcess = "http://sandbox.internal"

// backends hold the sandboxes of all configurations. They outlive a reload, so
// that sessions do.
var backends = caddy.NewUsagePool()

// backend is a source of sandboxes with the sessions in it, shared by all
// handlers whose sandboxes are the same.
type backend struct {
	id     string // short name for operators; two may share it for a while
	engine string // engineE2B or engineLocal
	client *e2b.Client
	server *local.Server // nil for E2B
	pool   *session.Pool
	relay  *relay

	announcer atomic.Pointer[announcer] // of the configuration that was loaded last; nil for none
	events    queue

	mu       sync.Mutex
	leases   []*lease
	requests int
	quiet    chan struct{} // closed when requests becomes 0; nil when nobody waits
}

// lease is one handler's share of a backend.
type lease struct {
	backend *backend
	key     any
	share
	configuration <-chan struct{} // closed at its end; the same one for all of its handlers
	release       func() error
}

// share is what a handler brings along, and what holds for all handlers of the
// backend while it is the last one loaded.
type share struct {
	limits    session.Limits
	logger    *zap.Logger
	announcer *announcer
	storage   session.Storage // nil: sessions are not shared
}

// acquire returns a share of the backend that a spec describes, which is
// started if there is none. The share of the lease that was acquired last holds
// for all.
func acquire(ctx context.Context, spec backendSpec, s share) (*lease, error) {
	key := spec.key()
	value, _, err := backends.LoadOrNew(key, func() (caddy.Destructor, error) {
		return newBackend(ctx, spec, s)
	})
	if err != nil {
		return nil, err
	}
	l := &lease{backend: value.(*backend), key: key, share: s, configuration: ctx.Done()}
	l.release = sync.OnceValue(func() error {
		l.backend.drop(l)
		_, err := backends.Delete(key)
		return err
	})
	l.backend.add(l)
	return l, nil
}

func newBackend(ctx context.Context, spec backendSpec, s share) (*backend, error) {
	secret, err := spec.secret()
	if err != nil {
		return nil, err
	}
	fingerprint := spec.fingerprint(secret)
	b := &backend{id: session.Short(spec.name(fingerprint, secret)), engine: spec.engine(), relay: newRelay(s.logger)}
	log := b.relay.logger()
	if b.client, b.server, err = spec.open(ctx, log); err != nil {
		return nil, err
	}
	if spec.e2b != nil && !spec.found() {
		s.logger.Warn("sessions will not be found again after a restart: there is neither an api_key nor a secret to name them with; set the option secret of sandbox e2b")
	}
	b.pool = session.NewPool(session.Config{
		Client:      b.client,
		Limits:      s.limits,
		Secret:      secret,
		Fingerprint: fingerprint,
		Remote:      spec.e2b != nil,
		Logger:      log,
		Observer:    b.observe,
	})
	fleet.add(b)
	sandboxMetrics.begin(b.engine)
	return b, nil
}

// open returns the client of the sandboxes, and the server that makes them
// when that is not somebody else's.
func (s backendSpec) open(ctx context.Context, logger *zap.Logger) (*e2b.Client, *local.Server, error) {
	if s.e2b != nil {
		client, err := e2b.New(e2b.Config{
			APIKey:     s.e2b.apiKey,
			APIURL:     s.e2b.apiURL,
			Domain:     s.e2b.domain,
			SandboxURL: s.e2b.sandboxURL,
			Template:   s.e2b.template,
			Internet:   s.e2b.internet,
			MaxRead:    s.e2b.maxRead,
			Logger:     logger,
		})
		return client, nil, ofE2B(err)
	}
	ctx, cancel := context.WithTimeout(ctx, selfTestTimeout)
	defer cancel()
	server, err := local.New(ctx, s.local.config("", logger))
	if err != nil {
		return nil, nil, err
	}
	client, err := e2b.New(e2b.Config{
		APIURL:     inProcess,
		SandboxURL: inProcess,
		MaxRead:    s.local.maxRead,
		Transport:  server.Transport(),
		Logger:     logger,
	})
	if err != nil {
		return nil, nil, errors.Join(err, server.Close())
	}
	return client, server, nil
}

func (b *backend) add(l *lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, other := range b.leases {
		if other.configuration != l.configuration {
			continue // one that a reload replaces
		}
		if options := differing(&other.share, &l.share); len(options) > 0 {
			l.logger.Warn("handlers that share sandboxes set different limits, and those of the last one hold for all of them; "+
				"give these options one value, or the sandboxes different ones", zap.Strings("options", options))
			break
		}
	}
	b.leases = append(b.leases, l)
	b.obey(l)
}

// differing returns the options in which shares differ.
func differing(one, other *share) []string {
	a, b := &one.limits, &other.limits
	var options []string
	for _, o := range []struct {
		name    string
		differs bool
	}{
		{"exec_timeout", a.ExecTimeout != b.ExecTimeout},
		{"sandbox_timeout", a.SandboxTimeout != b.SandboxTimeout},
		{"queue_timeout", a.QueueTimeout != b.QueueTimeout},
		{"sessions idle", a.Idle != b.Idle},
		{"sessions max_per_identity", a.MaxPerIdentity != b.MaxPerIdentity},
		{"sessions max", a.Max != b.Max},
		{"sessions create_rate", a.CreateEvery != b.CreateEvery},
		{"sessions on_idle", a.Pause != b.Pause},
		{"sessions keep", a.Keep != b.Keep},
		{"sessions on_exit", a.DeleteOnExit != b.DeleteOnExit},
		{"sessions shared", (one.storage == nil) != (other.storage == nil)},
	} {
		if o.differs {
			options = append(options, o.name)
		}
	}
	return options
}

// drop takes a lease away. If it was the last one to be acquired, because its
// configuration failed to load, the one before it holds again.
func (b *backend) drop(l *lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leases = slices.DeleteFunc(b.leases, func(other *lease) bool { return other == l })
	if n := len(b.leases); n > 0 {
		b.obey(b.leases[n-1])
	}
}

// loaded is whether a configuration has the backend.
func (b *backend) loaded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.leases) > 0
}

func (b *backend) obey(l *lease) {
	b.pool.SetLimits(l.limits)
	b.pool.Share(l.storage)
	b.relay.set(l.logger)
	b.announcer.Store(l.announcer)
}
