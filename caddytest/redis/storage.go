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

// Package redis is a storage for Caddy in Redis, for the tests of gateways that
// share one. It is small, and no storage to be used.
package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/redis/go-redis/v9"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

const (
	lockTime = 10 * time.Second // of a process that has died
	lockPoll = 50 * time.Millisecond
)

func init() {
	caddy.RegisterModule(new(Storage))
}

// Storage keeps values and locks in Redis.
type Storage struct {
	// The server, as host:port.
	Address string `json:"address,omitempty"`

	client *redis.Client
	mu     sync.Mutex
	held   map[string]*heldLock
}

// heldLock is a lock of this process, kept alive until it is released.
type heldLock struct {
	token string
	stop  context.CancelFunc
}

// CaddyModule returns the Caddy module information.
func (*Storage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.storage.test_redis", New: func() caddy.Module { return new(Storage) }}
}

// UnmarshalCaddyfile reads: test_redis <address>.
func (s *Storage) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&s.Address) {
		return d.ArgErr()
	}
	return nil
}

// Provision makes the client.
func (s *Storage) Provision(caddy.Context) error {
	s.client = redis.NewClient(&redis.Options{Addr: s.Address})
	s.held = make(map[string]*heldLock)
	return nil
}

// Cleanup closes the connections.
func (s *Storage) Cleanup() error { return s.client.Close() }

// CertMagicStorage returns the storage.
func (s *Storage) CertMagicStorage() (certmagic.Storage, error) { return s, nil }

// Lock takes a lock, which goes stale with this process.
func (s *Storage) Lock(ctx context.Context, name string) error {
	token := rand.Text()
	for {
		ok, err := s.client.SetNX(ctx, "lock:"+name, token, lockTime).Result()
		if err != nil {
			return err
		}
		if ok {
			break
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	go s.refresh(alive, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[name] = &heldLock{token, stop}
	return nil
}

func (s *Storage) refresh(ctx context.Context, name string) {
	ticker := time.NewTicker(lockTime / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.client.PExpire(ctx, "lock:"+name, lockTime)
		case <-ctx.Done():
			return
		}
	}
}

// release deletes a lock if it is still the one that was taken.
var release = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)

// Unlock releases a lock.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	s.mu.Lock()
	held := s.held[name]
	delete(s.held, name)
	s.mu.Unlock()
	if held == nil {
		return fmt.Errorf("lock %s is not held", name)
	}
	held.stop()
	return release.Run(ctx, s.client, []string{"lock:" + name}, held.token).Err()
}

// Store puts a value.
func (s *Storage) Store(ctx context.Context, key string, value []byte) error {
	return s.client.Set(ctx, "value:"+key, value, 0).Err()
}

// Load returns a value.
func (s *Storage) Load(ctx context.Context, key string) ([]byte, error) {
	value, err := s.client.Get(ctx, "value:"+key).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, fs.ErrNotExist
	}
	return value, err
}

// Delete deletes a value.
func (s *Storage) Delete(ctx context.Context, key string) error {
	return s.client.Del(ctx, "value:"+key).Err()
}

// Exists says whether there is a value.
func (s *Storage) Exists(ctx context.Context, key string) bool {
	n, err := s.client.Exists(ctx, "value:"+key).Result()
	return err == nil && n > 0
}

// List returns the keys below a prefix, all of them.
func (s *Storage) List(ctx context.Context, prefix string, _ bool) ([]string, error) {
	var keys []string
	scan := s.client.Scan(ctx, 0, "value:"+prefix+"/*", 1000).Iterator()
	for scan.Next(ctx) {
		keys = append(keys, strings.TrimPrefix(scan.Val(), "value:"))
	}
	if err := scan.Err(); err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, fs.ErrNotExist
	}
	return keys, nil
}

// Stat says how large a value is.
func (s *Storage) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	value, err := s.Load(ctx, key)
	return certmagic.KeyInfo{Key: key, Size: int64(len(value)), IsTerminal: true}, err
}

// Interface guards
var (
	_ caddy.StorageConverter = (*Storage)(nil)
	_ caddy.Provisioner      = (*Storage)(nil)
	_ caddy.CleanerUpper     = (*Storage)(nil)
	_ caddyfile.Unmarshaler  = (*Storage)(nil)
	_ certmagic.Storage      = (*Storage)(nil)
)
