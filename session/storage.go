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

package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// storageTimeout bounds one call of the storage.
	storageTimeout = 5 * time.Second

	// lockTimeout is how long a program waits for the lock of its session's
	// record before it goes on without. That of a process that has died is to be
	// had by then: on a file system it goes stale after 10 seconds.
	lockTimeout = 15 * time.Second

	// storageRest is how long a storage that has failed is left alone.
	storageRest = 10 * time.Second

	storageRoot = "code_interpreter"
	recordExt   = ".json"
)

// Storage is what several processes share. Its methods are those of Caddy's
// storage (certmagic.Storage) and are used as described there. Locks may be slow
// and may be lost: they guard records, never the time that a program runs.
type Storage interface {
	Lock(ctx context.Context, name string) error
	Unlock(ctx context.Context, name string) error
	Store(ctx context.Context, key string, value []byte) error
	Load(ctx context.Context, key string) ([]byte, error) // fs.ErrNotExist for none
	Delete(ctx context.Context, key string) error
	List(ctx context.Context, prefix string, recursive bool) ([]string, error)
}

// errAlone says that there is no storage, or that it cannot be used for now: the
// process goes on with what it knows itself and what the provider lists.
var errAlone = errors.New("session: nothing is shared with other processes")

// name is a session in the storage.
type name struct {
	identity, session string
}

// shelf keeps the records of sessions in the storage. It is safe for concurrent
// use.
type shelf struct {
	owner  string // this process, in records
	root   string // of the pool's records
	logger *zap.Logger

	mu      sync.Mutex
	storage *opened // nil: nothing is shared
	failing bool    // and that was said
	leaving bool    // the pool is being drained
	resting time.Time
	queues  map[string]*queue
}

// opened is a storage from when it came until the next one.
type opened struct{ Storage }

// queue is where the goroutines of this process wait for one lock, because
// storages are polled for theirs.
type queue struct {
	free  chan struct{} // holds a token while nobody has the lock
	users int
}

func newShelf(owner, fingerprint string, logger *zap.Logger) *shelf {
	return &shelf{
		owner: owner, root: path.Join(storageRoot, fingerprint), logger: logger, queues: make(map[string]*queue),
	}
}

// use replaces the storage; nil for none.
func (s *shelf) use(storage Storage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storage, s.failing, s.resting = nil, false, time.Time{}
	if storage != nil {
		s.storage = &opened{storage}
	}
}

// leave says that the pool is being drained.
func (s *shelf) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = true
}

// on says that there is a storage, whether it works or not.
func (s *shelf) on() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.storage != nil
}

// open returns the storage if there is one and it works as far as is known.
func (s *shelf) open() (*opened, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.storage == nil || time.Now().Before(s.resting) {
		return nil, errAlone
	}
	return s.storage, nil
}

// call makes one call, not cut short when its caller leaves. An error of the
// storage becomes errAlone and is logged once until it works again; a key that
// does not exist is no error of the storage.
func (s *shelf) call(ctx context.Context, storage *opened, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storageTimeout)
	defer cancel()
	err := f(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fs.ErrNotExist
	}
	s.failed(storage, err)
	return errAlone
}

// failed notes that a storage does not work.
func (s *shelf) failed(storage *opened, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.storage != storage {
		return // it is another one's turn by now
	}
	switch {
	case s.failing:
	case s.leaving: // the configuration's storage has ended before the pool
		s.logger.Debug("the storage fails at the end", zap.Error(err))
	default:
		s.logger.Error("the storage fails, sessions are not shared with other gateways for now", zap.Error(err))
	}
	s.failing, s.resting = true, time.Now().Add(storageRest)
}

// worked notes that a storage works: it has taken a record, for which the lock
// was had and the record before it was read.
func (s *shelf) worked(storage *opened) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.storage == storage && s.failing {
		s.logger.Info("the storage works again, sessions are shared with other gateways")
		s.failing = false
	}
}

// lock takes a lock of the storage, first from the others of this process. It
// returns errAlone when that takes longer than wait.
func (s *shelf) lock(ctx context.Context, what string, wait time.Duration) (*opened, func(), error) {
	storage, err := s.open()
	if err != nil {
		return nil, nil, err
	}
	what = storageRoot + "_" + what
	bounded, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(wait, cancel)
	leave, err := s.enqueue(bounded, what)
	if err == nil {
		if err = storage.Lock(bounded, what); err != nil {
			leave()
		}
	}
	timer.Stop()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		cancel()
		return nil, nil, ctx.Err()
	default:
		defer cancel()
		return nil, nil, s.unlockable(ctx, storage, bounded.Err() != nil, err)
	}
	return storage, func() {
		defer leave()
		defer cancel() // not before: some locks live as long as their context
		_ = s.call(ctx, storage, func(ctx context.Context) error { return storage.Unlock(ctx, what) })
	}, nil
}

// unlockable tells a lock that somebody holds from a storage that fails.
func (s *shelf) unlockable(ctx context.Context, storage *opened, late bool, err error) error {
	if !late {
		s.failed(storage, err)
		return errAlone
	}
	err = s.call(ctx, storage, func(ctx context.Context) error {
		_, err := storage.Load(ctx, path.Join(s.root, "none"))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		s.logger.Warn("another process holds the lock of a session for too long, this one goes on without")
	}
	return errAlone
}

// enqueue waits for the turn among this process's users of a lock.
func (s *shelf) enqueue(ctx context.Context, what string) (leave func(), err error) {
	s.mu.Lock()
	q := s.queues[what]
	if q == nil {
		q = &queue{free: make(chan struct{}, 1)}
		q.free <- struct{}{}
		s.queues[what] = q
	}
	q.users++
	s.mu.Unlock()
	forget := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if q.users--; q.users == 0 {
			delete(s.queues, what)
		}
	}
	select {
	case <-q.free:
		return func() { q.free <- struct{}{}; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, ctx.Err()
	}
}

func (s *shelf) key(n name) string {
	return path.Join(s.root, n.identity, n.session+recordExt)
}

// held is a session's record while its lock is held.
type held struct {
	shelf   *shelf
	storage *opened
	key     string
	rec     *record // nil for none
	release func()
}

// hold takes the lock of a session and loads its record.
func (s *shelf) hold(ctx context.Context, n name, wait time.Duration) (*held, error) {
	storage, unlock, err := s.lock(ctx, n.session, wait)
	if err != nil {
		return nil, err
	}
	h := &held{shelf: s, storage: storage, key: s.key(n), release: unlock}
	if h.rec, err = s.load(ctx, storage, h.key); err != nil {
		unlock()
		return nil, err
	}
	return h, nil
}

// peek returns the record of a session without its lock.
func (s *shelf) peek(ctx context.Context, n name) (*record, error) {
	storage, err := s.open()
	if err != nil {
		return nil, err
	}
	return s.load(ctx, storage, s.key(n))
}

// load returns a record, nil for none. One that cannot be read is none: it is
// written anew.
func (s *shelf) load(ctx context.Context, storage *opened, key string) (*record, error) {
	var data []byte
	err := s.call(ctx, storage, func(ctx context.Context) (err error) {
		data, err = storage.Load(ctx, key)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // that is what none looks like
	}
	if err != nil {
		return nil, err
	}
	rec, err := parseRecord(data)
	if err != nil {
		s.logger.Warn("ignoring a session's record that cannot be read", zap.String("key", key), zap.Error(err))
	}
	return rec, nil
}

// put stores a record.
func (h *held) put(ctx context.Context, rec *record) error {
	data, err := rec.encode()
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	err = h.shelf.call(ctx, h.storage, func(ctx context.Context) error { return h.storage.Store(ctx, h.key, data) })
	if err == nil {
		h.rec = rec
		h.shelf.worked(h.storage)
	}
	return err
}

// remove deletes the record.
func (h *held) remove(ctx context.Context) error {
	return h.shelf.call(ctx, h.storage, func(ctx context.Context) error {
		err := h.storage.Delete(ctx, h.key)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// all returns the records of a caller, or of all callers for an empty one.
func (s *shelf) all(ctx context.Context, storage *opened, identity string) (map[name]*record, error) {
	var keys []string
	err := s.call(ctx, storage, func(ctx context.Context) (err error) {
		keys, err = storage.List(ctx, path.Join(s.root, identity), true)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	found := make(map[name]*record)
	for _, key := range keys {
		n, ok := s.parseKey(key)
		if !ok || identity != "" && n.identity != identity {
			continue // a directory, or a caller whose name only begins alike
		}
		rec, err := s.load(ctx, storage, key)
		if err != nil {
			return nil, err
		}
		if rec != nil {
			found[n] = rec
		}
	}
	return found, nil
}

func (s *shelf) parseKey(key string) (name, bool) {
	rest, ok := strings.CutPrefix(key, s.root+"/")
	if !ok {
		return name{}, false
	}
	rest, ok = strings.CutSuffix(rest, recordExt)
	identity, session, two := strings.Cut(rest, "/")
	return name{identity, session}, ok && two && !strings.Contains(session, "/")
}
