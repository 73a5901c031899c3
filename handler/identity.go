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
	"encoding/binary"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// warning is a log entry that is written once.
type warning struct{ given atomic.Bool }

func (w *warning) log(logger *zap.Logger, message string) {
	if !w.given.Swap(true) {
		logger.Warn(message)
	}
}

// caller returns whose sessions a request may use. It is false when the
// configured identity is empty. A caller that cannot be told from others is
// nobody: sessions are not for it.
func (h *Handler) caller(r *http.Request) (c session.Caller, known bool) {
	repl, _ := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if repl != nil && h.Identity != "" {
		value := repl.ReplaceAll(h.Identity, "")
		return session.Caller{Kind: "identity", Value: value}, value != ""
	}
	if repl != nil {
		if user, ok := repl.GetString("http.auth.user.id"); ok && user != "" {
			return session.Caller{Kind: "user", Value: user}, true
		}
	}
	if key := apiKey(r.Header); key != "" {
		return session.Caller{Kind: "key", Value: key}, true
	}
	ip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	return session.Caller{Kind: "ip", Value: ip}, true
}

// strangers says whether the caller is an address that is not its own alone:
// that of a proxy which nobody told Caddy to trust, or one that it made up.
func (h *Handler) strangers(r *http.Request, c session.Caller) bool {
	if c.Kind != "ip" {
		return false
	}
	trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
	forwarded := len(r.Header["X-Forwarded-For"]) > 0 || len(r.Header["Forwarded"]) > 0
	if c.Value == "" {
		return true
	}
	if forwarded && !trusted {
		h.proxyWarning.log(h.Logger, "requests without an identity come through a proxy that is not trusted, so they get no sessions: "+
			"list the proxy in the server option trusted_proxies, or authenticate the callers")
		return true
	}
	if trusted && invented(r, c.Value) {
		h.proxyWarning.log(h.Logger, "requests without an identity come with a list of addresses of which clients can write the first, so they get no sessions: "+
			"set the server option trusted_proxies_strict, or authenticate the callers")
		return true
	}
	return false
}

// invented says whether the address that a trusted proxy told of may be one
// that the client has made up. Proxies append to a list, and without
// trusted_proxies_strict Caddy takes the first of it.
func invented(r *http.Request, address string) bool {
	server, ok := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok || server.TrustedProxiesStrict > 0 {
		return false
	}
	for _, name := range server.ClientIPHeaders {
		list := strings.Join(r.Header.Values(name), ",")
		if strings.Contains(list, ",") {
			return true
		}
		if strings.Contains(list, address) {
			return false // headers after it do not count
		}
	}
	return false
}

// keyHeaders carry the API keys of the field.
var keyHeaders = []string{"Authorization", "Api-Key", "X-Api-Key"}

// dummyKeys are what clients send to servers that want no key. They would make
// strangers one caller.
var dummyKeys = []string{"", "ollama", "empty", "none", "dummy", "lm-studio", "sk-no-key-required"}

// apiKey returns all keys of a request as one value, "" when it has none.
func apiKey(header http.Header) string {
	var key []byte
	for i, name := range keyHeaders {
		for _, value := range header[name] {
			value = strings.TrimSpace(value)
			bare := value
			if scheme, rest, ok := strings.Cut(value, " "); ok && strings.EqualFold(scheme, "Bearer") {
				bare = strings.TrimSpace(rest)
			} else if strings.EqualFold(value, "Bearer") {
				bare = ""
			}
			if slices.Contains(dummyKeys, strings.ToLower(bare)) {
				continue
			}
			key = binary.AppendUvarint(append(key, byte(i)), uint64(len(value)))
			key = append(key, value...)
		}
	}
	return string(key)
}
