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
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Key returns the name of a caller's session, in hexadecimal: an HMAC over the
// length-prefixed kind, value and session id. No two different triples are the
// same bytes, wherever separators stand in them, and without the secret nobody
// can compute or reverse it. It is safe to store and to log.
func Key(secret []byte, c Caller, sessionID string) string {
	return digest(secret, c.Kind, c.Value, sessionID)
}

// identityKey returns the name of a caller, in hexadecimal. A pair is never the
// same bytes as a triple, so it meets no session's name.
func identityKey(secret []byte, c Caller) string {
	return digest(secret, c.Kind, c.Value)
}

func digest(secret []byte, parts ...string) string {
	size := 0
	for _, part := range parts {
		size += 8 + len(part)
	}
	message := make([]byte, 0, size)
	for _, part := range parts {
		message = binary.BigEndian.AppendUint64(message, uint64(len(part)))
		message = append(message, part...)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(message)
	return hex.EncodeToString(mac.Sum(nil))
}

// Keys returns the keyed hashes by which the session and its caller are known
// outside of this process. The session's is empty for a request without one.
func (h *Handle) Keys() (session, caller string) { return h.key, h.caller }
