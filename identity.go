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
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

const (
	secretSize      = 32
	fingerprintSize = 16

	// secretLabel must never change: it decides whether a new release finds the
	// sessions of the one before.
	secretLabel = "caddy code_interpreter session names v1"
)

// processSecret hashes the names of sessions that no other process may find.
var processSecret = func() (secret [secretSize]byte) {
	_, _ = rand.Read(secret[:]) // never fails
	return secret
}()

// key is what the backend is pooled by: equal for specs whose sandboxes are
// the same.
func (s backendSpec) key() [sha256.Size]byte {
	if s.local != nil {
		return digest(s.local.parts()...)
	}
	return digest(append(s.e2b.parts(), s.e2b.apiKey, s.e2b.secret, strconv.FormatInt(s.e2b.maxRead, 10))...)
}

// found is whether another process with the same configuration can find the
// sandboxes again.
func (s backendSpec) found() bool {
	return s.e2b != nil && (s.e2b.apiKey != "" || s.e2b.secret != "")
}

// secret is the key that names of sessions are hashed with: the same in every
// process that has the backend's key, or the configured secret instead, and
// unknown to everyone else.
func (s backendSpec) secret() ([]byte, error) {
	if !s.found() {
		return processSecret[:], nil
	}
	return hkdf.Key(sha256.New, []byte(or(s.e2b.secret, s.e2b.apiKey)), nil, secretLabel, secretSize)
}

// fingerprint tells sandboxes of this backend from those of others that share
// its account. It is stored with every sandbox and gives nothing away.
func (s backendSpec) fingerprint(secret []byte) string {
	parts := []string{engineLocal}
	if s.e2b != nil {
		parts = s.e2b.parts()
	}
	return keyed(secret, digest(parts...))
}

// name is what operators call the backend: its fingerprint, which they find in
// the sandboxes of E2B too, and something alike for local ones.
func (s backendSpec) name(fingerprint string, secret []byte) string {
	if s.local != nil {
		return keyed(secret, s.key())
	}
	return fingerprint
}

func keyed(secret []byte, sum [sha256.Size]byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write(sum[:])
	return hex.EncodeToString(mac.Sum(nil)[:fingerprintSize])
}

func (s *e2bSpec) parts() []string {
	return []string{engineE2B, s.apiURL, s.domain, s.sandboxURL, s.template, strconv.FormatBool(s.internet)}
}

func (s *localSpec) parts() []string {
	return append([]string{
		engineLocal, s.python,
		strconv.FormatInt(s.memory, 10), strconv.FormatInt(s.disk, 10), strconv.Itoa(s.processes),
		strconv.Itoa(s.warm), strconv.FormatInt(s.maxRead, 10),
	}, s.preload...)
}

// digest hashes strings so that no two lists of them are the same bytes.
func digest(parts ...string) [sha256.Size]byte {
	var message []byte
	for _, part := range parts {
		message = binary.BigEndian.AppendUint64(message, uint64(len(part)))
		message = append(message, part...)
	}
	return sha256.Sum256(message)
}
