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

package handler

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// What is kept of answers to requests with an Idempotency-Key.
const (
	replayFor      = time.Minute
	maxReplays     = 1000     // answers
	maxReplayBytes = 64 << 20 // of all answers together
	maxKeyLength   = 255
)

// replays are the answers of the process: they outlive configurations.
var replays = newReplayTable()

// replayTable has the requests with an Idempotency-Key that run, and the
// answers of those that have ended lately, so that a client which sends a
// request again does not have its code run again. It is safe for concurrent
// use.
type replayTable struct {
	mu      sync.Mutex
	running map[replayKey]*replay
	done    *recent[replayKey, *replay]
}

// replayKey is everything that makes two requests the same one, but for the
// body.
type replayKey struct {
	pool *session.Pool // stands for the handler, which a reload replaces
	sum  [sha256.Size]byte
}

// replay is a request that runs or has run.
type replay struct {
	key    replayKey
	body   [sha256.Size]byte
	stream bool
	ended  chan struct{} // closed when it is known what came of it

	answer *answered // set before ended is closed; nil if it cannot be given again
}

// answered is an answer that can be given again. The handlers in front of us
// write to the values of a header, so that each answer has its own.
type answered struct {
	header http.Header
	body   []byte
}

func newReplayTable() *replayTable {
	return &replayTable{
		running: map[replayKey]*replay{},
		done:    newRecent[replayKey, *replay](replayFor, maxReplays, maxReplayBytes),
	}
}

// begin registers a request, or returns the one that it repeats.
func (t *replayTable) begin(r *replay) (earlier *replay) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if earlier, ok := t.running[r.key]; ok {
		return earlier
	}
	if earlier, ok := t.done.get(r.key); ok {
		return earlier
	}
	t.running[r.key] = r
	return nil
}

// end notes what came of a request. Without an answer that can be given again
// the next request with the key is a new one.
func (t *replayTable) end(r *replay, answer *answered) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, r.key)
	if r.answer = answer; answer != nil {
		t.done.add(r.key, r, len(answer.body))
	}
	close(r.ended)
}

// once carries a request out, unless it repeats one: then it gets the answer of
// that. It does so for callers that can be told from others.
func (x *exchange) once() error {
	name := x.r.Header.Get("Idempotency-Key")
	if name == "" || x.caller.Kind == "ip" {
		return x.run()
	}
	if len(name) > maxKeyLength {
		return x.refuse(refuse(http.StatusBadRequest, "", "The header Idempotency-Key is longer than %d bytes. Send a shorter one.", maxKeyLength))
	}
	key := x.replayKey(name)
	for {
		mine := &replay{key: key, body: x.bodyHash(), stream: x.req.Stream, ended: make(chan struct{})}
		earlier := replays.begin(mine)
		if earlier == nil {
			x.replay = mine
			defer x.settle(nil) // also after a panic
			return x.run()
		}
		answer, refused := earlier.repeat(x.r.Context(), mine)
		switch {
		case refused != nil:
			return x.refuse(refused)
		case answer != nil:
			x.report.outcome = outcomeReplayed
			x.tell()
			return answer.write(x.w)
		case x.r.Context().Err() != nil:
			return nil
		}
		// The earlier one has failed: this is its retry.
	}
}

// settle lets the repetitions of this request go on: with its answer, or
// without one. It comes before anything is written, since the client may have
// stopped to read. What comes after the first call changes nothing.
func (x *exchange) settle(answer *answered) {
	if x.replay == nil {
		return
	}
	if answer != nil {
		answer.header = answer.header.Clone()
	}
	replays.end(x.replay, answer)
	x.replay = nil
}

// repeat waits for the answer to a request that r is sent again of. Neither
// answer nor refusal means that there is none.
func (r *replay) repeat(ctx context.Context, again *replay) (*answered, *refusal) {
	switch {
	case r.body != again.body:
		return nil, refuse(http.StatusUnprocessableEntity, "", "The Idempotency-Key was used for a request with another body. Use a new key for a new request.")
	case r.stream || again.stream:
		return nil, refuse(http.StatusConflict, "", "A request with this Idempotency-Key runs or has just run, and an answer that is streamed cannot be given again.")
	}
	select {
	case <-r.ended:
		return r.answer, nil
	case <-ctx.Done():
		return nil, nil
	}
}

func (a *answered) write(w http.ResponseWriter) error {
	copyHeader(w.Header(), a.header.Clone())
	w.Header().Set("Idempotent-Replayed", "true")
	return writeJSON(w, http.StatusOK, a.body)
}

// credentials are headers by which upstreams and gateways tell callers apart.
var credentials = append([]string{"Cookie", "Proxy-Authorization", "Openai-Organization", "Openai-Project"}, keyHeaders...)

// replayKey hashes what a request must have in common with an earlier one.
func (x *exchange) replayKey(name string) replayKey {
	h := sha256.New()
	hashParts(h, name, x.h.ToolName, x.caller.Kind, x.caller.Value, x.session,
		x.r.Method, x.r.Host, x.r.URL.Path, x.r.URL.RawQuery)
	for _, header := range credentials {
		hashParts(h, header)
		hashParts(h, x.r.Header[header]...)
	}
	return replayKey{pool: x.h.Pool, sum: [sha256.Size]byte(h.Sum(nil))}
}

func (x *exchange) bodyHash() (sum [sha256.Size]byte) {
	h := sha256.New()
	// A hash takes everything that it is given.
	_, _ = x.req.Body().Segments().WriteTo(h)
	h.Sum(sum[:0])
	return sum
}

// hashParts adds texts to a hash so that no two lists of them are the same.
func hashParts(h hash.Hash, parts ...string) {
	var length [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		_, _ = io.WriteString(h, p) // a hash never fails
	}
}
