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

package e2b

import (
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
)

// maxHeader bounds the headers of an answer: the data plane's are written by
// whoever runs code there.
const maxHeader = 64 << 10

// newTransport returns a transport for many short calls to few hosts.
func newTransport() *http.Transport {
	dialer := &net.Dialer{
		Timeout: 10 * time.Second,
		// An idle connection that a firewall forgot must be noticed before it is
		// used: a run sent over it would wait for its whole deadline.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 3},
	}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConns:           512,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        5 * time.Minute, // longer than a model and its user think between two runs
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // a compressing proxy would hold lines back
		ForceAttemptHTTP2:      true,
		HTTP2: &http.HTTP2Config{
			// Without pings a dead connection keeps its requests for minutes
			// (golang/go#36026); a blocked write keeps the ping back (golang/go#48810).
			SendPingTimeout:  15 * time.Second,
			PingTimeout:      15 * time.Second,
			WriteByteTimeout: 30 * time.Second,
		},
	}
}

// send sends a request and follows nothing. sent is false when nothing of it
// can have reached a server. The body of the answer is bounded by limit.
func (c *Client) send(r *http.Request, limit int64) (resp *http.Response, sent bool, err error) {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
	r.Header.Set("User-Agent", userAgent)
	resp, err = c.rt.RoundTrip(r)
	if err != nil {
		return nil, connected.Load() || (c.own == nil && !isDialError(err)), err
	}
	reader, err := decoded(resp, limit)
	if err != nil {
		_ = resp.Body.Close() // the answer is refused whatever closing says
		return nil, true, err
	}
	resp.Body = &answerBody{reader: reader, body: resp.Body}
	return resp, true, nil
}

// decoded returns a reader of at most limit bytes of a body, of which at most
// limit come over the wire.
func decoded(resp *http.Response, limit int64) (io.Reader, error) {
	wire := &limitedReader{r: resp.Body, left: limit}
	switch strings.ToLower(resp.Header.Get("Content-Encoding")) {
	case "", "identity":
		return wire, nil
	case "gzip", "x-gzip": // some proxies compress unasked
		return &limitedReader{r: &lazyGzip{wire: wire}, left: limit}, nil
	default:
		return nil, errEncoding
	}
}
