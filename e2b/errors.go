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
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Kind is what went wrong, in the terms in which a caller decides what to do.
type Kind int

// The kinds of an Error.
const (
	// Unavailable: the server failed (5xx) or could not be reached. For the
	// control plane, and for the calls about contexts.
	Unavailable Kind = iota + 1
	// RateLimited: 429; Error.RetryAfter says when to try again, if known.
	RateLimited
	// Unauthorized: 401 or 403.
	Unauthorized
	// Refused: any other 4xx. Trying again is of no use.
	Refused
	// Gone: the sandbox is no more. Code that was sent has not started.
	Gone
	// ContextGone: the sandbox lives, the context does not. The code has not started.
	ContextGone
	// NotReady: nothing listens in the sandbox, or the data plane could not be
	// reached. The code has not started.
	NotReady
	// Interrupted: the answer was cut, or the server failed after the code was
	// sent. The code may have run, in part or whole.
	Interrupted
	// TimedOut: Execution.Timeout ran out and the execution was abandoned.
	TimedOut
	// TooLarge: the answer has more than Config.MaxRead bytes (or a control-plane
	// answer is out of all proportion); an execution was abandoned.
	TooLarge
	// BadAnswer: the answer breaks the protocol (a redirect, an id or domain
	// that cannot be one), or an argument could not be sent.
	BadAnswer
)

var kindText = map[Kind]string{
	Unavailable:  "server unavailable",
	RateLimited:  "rate or concurrency limit reached",
	Unauthorized: "not authorized",
	Refused:      "request refused",
	Gone:         "sandbox does not exist any more",
	ContextGone:  "context does not exist any more",
	NotReady:     "sandbox does not answer",
	Interrupted:  "execution interrupted",
	TimedOut:     "execution timed out",
	TooLarge:     "answer too large",
	BadAnswer:    "answer breaks the protocol",
}

// String returns the kind in words.
func (k Kind) String() string {
	if text, ok := kindText[k]; ok {
		return text
	}
	return "kind " + strconv.Itoa(int(k))
}

// Error is the error of every call of a Client. Neither its text nor that of
// what it wraps contains a body, a host, a URL or a secret.
type Error struct {
	Op         string        // the call: "create", "execute", ...
	Kind       Kind          // what went wrong
	Status     int           // HTTP status, 0 when there was none
	RetryAfter time.Duration // what the server asked to wait, 0 when it did not
	Err        error         // the cause, nil when the status says it all
}

// Error says what failed and why.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "e2b: %s: %s", e.Op, e.Kind)
	if e.Status != 0 {
		fmt.Fprintf(&b, " (status %d)", e.Status)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns the cause; that of a canceled call is the context's error.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the Error in err's chain, 0 when there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return 0
}

// Causes that keep nothing of the peer's words.
var (
	errTooLarge   = errors.New("more bytes than allowed")
	errRedirect   = errors.New("redirects are not followed")
	errEncoding   = errors.New("content encoding not asked for")
	errConnection = errors.New("connection failed")
	errHostName   = errors.New("host name not found")
	errTLS        = errors.New("TLS connection not possible")
)

// scrub returns a cause that says as much as can be said without the names,
// addresses and words that transport errors carry.
func scrub(err error) error {
	var (
		errno  syscall.Errno
		dns    *net.DNSError
		cert   *tls.CertificateVerificationError
		record tls.RecordHeaderError
		alert  tls.AlertError
		netErr net.Error
	)
	for _, known := range []error{context.Canceled, context.DeadlineExceeded, errTooLarge, errEncoding, io.ErrUnexpectedEOF} {
		if errors.Is(err, known) {
			return known
		}
	}
	switch {
	case errors.As(err, &dns):
		return errHostName
	case errors.As(err, &cert), errors.As(err, &record), errors.As(err, &alert):
		return errTLS
	case errors.As(err, &errno):
		return errno
	case errors.As(err, &netErr) && netErr.Timeout():
		return os.ErrDeadlineExceeded
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	default:
		return errConnection
	}
}

// maxRetryAfter bounds what a server can ask for: no honest one asks for more.
const maxRetryAfter = 24 * time.Hour

// retryAfter parses a Retry-After header, in seconds or as a date.
func retryAfter(header http.Header) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(time.Until(date), 0), maxRetryAfter)
	}
	return 0
}
