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
	"errors"
	"net"
	"net/http"
	"strings"

	"go.uber.org/zap"
)

// maxErrorBody is how much of an error's body is looked at, maxLogged how much
// of it is logged.
const (
	maxErrorBody = 64 << 10
	maxLogged    = 512
)

// statusKind judges a status that is no success, where nothing more is known.
func statusKind(status int) Kind {
	switch {
	case status == http.StatusTooManyRequests:
		return RateLimited
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Unauthorized
	case status >= 500:
		return Unavailable
	case status >= 400:
		return Refused
	default: // a redirect, or no status at all
		return BadAnswer
	}
}

// statusError returns the error of an answer and logs what the server said.
func (c *Client) statusError(op string, kind Kind, resp *http.Response, body []byte, sb *Sandbox) *Error {
	c.logger.Debug("e2b call failed", zap.String("op", op), zap.Int("status", resp.StatusCode),
		zap.Stringer("kind", kind), zap.String("answer", c.loggable(string(body), sb)))
	e := &Error{Op: op, Kind: kind, Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header)}
	if resp.StatusCode >= 300 && resp.StatusCode <= 399 {
		e.Err = errRedirect
	}
	return e
}

// transportError returns the error of a call that got no whole answer. The
// context's own end comes first: a caller that went away did not meet a failure.
func (c *Client) transportError(ctx context.Context, op string, kind Kind, err error) *Error {
	if ended := ctx.Err(); ended != nil {
		return &Error{Op: op, Kind: kind, Err: ended}
	}
	c.logger.Debug("e2b call failed", zap.String("op", op), zap.Stringer("kind", kind),
		zap.String("cause", c.loggable(err.Error(), nil)))
	switch {
	case errors.Is(err, errTooLarge):
		return &Error{Op: op, Kind: TooLarge, Err: errTooLarge}
	case errors.Is(err, errEncoding):
		return &Error{Op: op, Kind: BadAnswer, Err: errEncoding}
	}
	return &Error{Op: op, Kind: kind, Err: scrub(err)}
}

// loggable shortens what a peer said and takes the secrets out, which some
// servers echo.
func (c *Client) loggable(text string, sb *Sandbox) string {
	secrets := []string{c.config.APIKey}
	if sb != nil {
		a := sb.access.Load()
		secrets = append(secrets, a.token, a.trafficToken)
	}
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "REDACTED")
		}
	}
	if len(text) > maxLogged {
		text = strings.ToValidUTF8(text[:maxLogged], "") + "..."
	}
	return text
}

// isDialError is whether an error says that no connection came about.
func isDialError(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &dns) || (errors.As(err, &op) && op.Op == "dial")
}
