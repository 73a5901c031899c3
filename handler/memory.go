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
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"hash"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// What is remembered of mixed turns.
const (
	maxRemembered  = 1000
	rememberFor    = 15 * time.Minute
	maxHidden      = 4 << 20  // bytes of one
	maxHiddenBytes = 64 << 20 // of all together
)

// remembered is the memory of the process: it outlives configurations.
var remembered = newMemory()

// memory keeps the hidden messages of mixed turns. A model may call our tool
// and one of the client in the same turn; the client sees its own call alone,
// and when it comes back with the result, what it did not see is put back.
// Without that the conversation goes on too. It is safe for concurrent use.
type memory struct {
	// Messages in place of the client's version of a turn.
	hidden *recent[memoryKey, [][]byte]
}

// memoryKey is of whose turn it was, and a hash of the calls the client saw and
// of all messages before.
type memoryKey struct {
	pool *session.Pool // stands for the handler, which a reload replaces
	sum  [sha256.Size]byte
}

func newMemory() *memory {
	return &memory{newRecent[memoryKey, [][]byte](rememberFor, maxRemembered, maxHiddenBytes)}
}

// keep remembers the last hidden turns of an exchange that ends in calls of
// the client.
func (m *memory) keep(x *exchange, clients []*wire.Call) {
	if x.stranger {
		return
	}
	h := newConversation(x)
	for message := range x.req.Messages() {
		if !h.add(x.req.Body().Bytes(message.Start, message.End)) {
			return
		}
	}
	ids := make([]string, len(clients))
	for i, call := range clients {
		ids[i] = call.ID
	}
	var messages [][]byte
	size := 0
	for i := range x.past {
		for _, raw := range x.past[i].appendTo(nil, x.without) {
			messages = append(messages, raw)
			size += len(raw)
		}
	}
	if size > maxHidden {
		return
	}
	m.hidden.add(h.key(ids), messages, size)
}

// recall returns the edits that put hidden messages back into a request. It
// decodes only what is before calls of the assistant.
func (m *memory) recall(x *exchange) []wire.Edit {
	if x.stranger || m.hidden.empty() {
		return nil
	}
	var edits []wire.Edit
	var before []wire.Message // not hashed yet
	h := newConversation(x)
	for message := range x.req.Messages() {
		ids := callIDs(x, message)
		if len(ids) > 0 {
			for _, earlier := range before {
				if !h.add(x.req.Body().Bytes(earlier.Start, earlier.End)) {
					return edits
				}
			}
			before = before[:0]
			if messages, ok := m.hidden.get(h.key(ids)); ok {
				edits = append(edits, wire.ReplaceMessage(message, messages...))
			}
		}
		before = append(before, message)
	}
	return edits
}

// callIDs returns the ids of the tool calls of a message, if it is the
// assistant's.
func callIDs(x *exchange, m wire.Message) []string {
	if m.Role != "assistant" {
		return nil
	}
	raw := x.req.Body().Bytes(m.Start, m.End)
	if !bytes.Contains(raw, []byte(`"tool_calls"`)) {
		return nil
	}
	var message struct {
		ToolCalls []struct {
			ID string `json:"id"`
		} `json:"tool_calls"`
	}
	if json.Unmarshal(raw, &message) != nil {
		return nil
	}
	ids := make([]string, len(message.ToolCalls))
	for i, call := range message.ToolCalls {
		ids[i] = call.ID
	}
	return ids
}

// conversation is a hash of messages. Clients may write the same message with
// other spaces, escapes or order of members, so their values are hashed.
type conversation struct {
	pool *session.Pool
	hash hash.Hash
}

func newConversation(x *exchange) conversation {
	h := conversation{x.h.Pool, sha256.New()}
	h.write(x.caller.Kind, x.caller.Value, x.session, x.h.ToolName)
	return h
}

func (h conversation) write(parts ...string) { hashParts(h.hash, parts...) }

// add takes the next message. It is false when it is no JSON.
func (h conversation) add(raw []byte) bool {
	var value any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&value) != nil {
		return false
	}
	canonical, err := json.Marshal(value)
	if err != nil {
		return false
	}
	h.write(string(canonical))
	return true
}

// key returns the key for a turn with the given calls after the messages so
// far, to which more can be added afterwards.
func (h conversation) key(ids []string) memoryKey {
	sum := sha256.New()
	sum.Write(h.hash.Sum(nil))
	hashParts(sum, ids...)
	return memoryKey{pool: h.pool, sum: [sha256.Size]byte(sum.Sum(nil))}
}
