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
	"maps"
	"net/http"
	"strings"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire"
)

// maxAnswer is the size in bytes of the largest answer that is held to look for
// calls in it, in one piece or the message of a stream; maxRefusal that of an
// error of an upstream; maxBlank that of the white space before an answer, of
// which some upstreams send a line every now and then while the model works.
const (
	maxAnswer  = 64 << 20
	maxRefusal = 1 << 20
	maxBlank   = 1 << 20
)

// capture takes the answer of one turn from the handlers behind us. It has
// headers of its own: what one turn sets is not for the next one.
type capture struct {
	turn   *turn
	header http.Header
	status int
	form   form
	body   []byte // of a document or a refusal; the start of what is not known yet
	blank  int    // how much of that start is white space
	split  wire.Splitter
}

// form is how an answer is written.
type form int

const (
	unknown  form = iota // not seen enough of it
	events               // server-sent events
	document             // JSON in one piece
	refused              // not a 200, kept to be looked at
	foreign              // none of these: for the client as it is
)

func (c *capture) Header() http.Header { return c.header }

// WriteHeader takes the status. Informational ones are for the one who sent
// the request, which is not the client.
func (c *capture) WriteHeader(status int) {
	if c.status != 0 || status < http.StatusOK {
		return
	}
	c.status = status
	switch {
	case !answers(status) && c.turn.first:
		c.toClient()
	case !answers(status):
		c.form = refused
	case !readable(c.header):
		c.strange()
	}
}

// answers says whether a status is that of an answer of the model. Servers made
// with NestJS answer every POST with 201, unless they are told not to:
// https://docs.nestjs.com/controllers#status-code
func answers(status int) bool { return status == http.StatusOK || status == http.StatusCreated }

// readable says whether an answer is in no encoding that hides what it is.
func readable(header http.Header) bool {
	encoding := header.Get("Content-Encoding")
	return encoding == "" || strings.EqualFold(encoding, "identity")
}

// strange deals with an answer of another form than any that a chat upstream
// has: in the first turn it is the client's, unless headers alone have begun a
// stream of ours; else it is an error.
func (c *capture) strange() {
	if c.turn.first && !c.turn.x.reply.begun() {
		c.toClient()
	} else {
		c.form = refused
	}
}

// toClient has the answer go to the client as it comes.
func (c *capture) toClient() {
	c.form = foreign
	c.turn.x.settle(nil) // it is none that could be given again
	w := c.turn.x.w
	maps.Copy(w.Header(), c.header)
	noEvents(w.Header(), c.status)
	w.WriteHeader(c.status)
}

// noEvents has an error that an upstream sends as a stream not look like one:
// clients read events of a success only.
func noEvents(header http.Header, status int) {
	if status >= http.StatusBadRequest && isEvents(header) {
		header.Set("Content-Type", "text/plain; charset=utf-8")
	}
}

func isEvents(header http.Header) bool {
	return strings.HasPrefix(strings.ToLower(header.Get("Content-Type")), "text/event-stream")
}

func (c *capture) Write(p []byte) (int, error) {
	c.WriteHeader(http.StatusOK)
	if c.form != unknown {
		return len(p), c.take(p)
	}
	start := p // not copied when it tells the form, as it mostly does
	if len(c.body) > 0 {
		start = append(c.body, p...)
	}
	c.blank = skipBlank(start, c.blank)
	if c.form = sniff(start[c.blank:]); c.form == unknown {
		return len(p), c.hold(p, maxBlank)
	}
	if c.form == foreign {
		c.strange()
	}
	c.body = nil
	return len(p), c.take(start)
}

func (c *capture) take(p []byte) error {
	switch c.form {
	case events:
		return c.turn.events(c, p)
	case document:
		return c.hold(p, maxAnswer)
	case refused:
		return c.hold(p, maxRefusal)
	case unknown, foreign:
	}
	_, err := c.turn.x.w.Write(p)
	return err
}

// hold keeps p, unless there is too much. What is cut off is known to be so by
// whoever reads the body.
func (c *capture) hold(p []byte, limit int) error {
	if len(c.body)+len(p) > limit {
		return wire.ErrEventTooLarge
	}
	c.body = append(c.body, p...)
	return nil
}

// FlushError passes a flush on when the answer is the client's. That a stream
// has begun, the client learns with it.
func (c *capture) FlushError() error {
	switch c.form {
	case foreign:
		return http.NewResponseController(c.turn.x.w).Flush()
	case unknown:
		if answers(c.status) && isEvents(c.header) {
			if err := c.turn.x.reply.begin(c.header); err != nil {
				return err
			}
			return c.turn.x.reply.flushSoon()
		}
	case events, document, refused: // sent when there is something to send
	}
	return nil
}

// Flush is FlushError for those who do not want to know.
func (c *capture) Flush() { _ = c.FlushError() }

var byteOrderMark = []byte("\xef\xbb\xbf")

// skipBlank returns where white space ends at the start of an answer, of which
// all before an offset is known to be such.
func skipBlank(p []byte, at int) int {
	if at == 0 && bytes.HasPrefix(p, byteOrderMark) {
		at = len(byteOrderMark)
	}
	return len(p) - len(bytes.TrimLeft(p[at:], " \t\r\n"))
}

// sniff tells the form of an answer by how it starts: content types are not to
// be relied on. https://github.com/cita-777/metapi/pull/177
func sniff(p []byte) form {
	if len(p) == 0 || len(p) < len(byteOrderMark) && bytes.HasPrefix(byteOrderMark, p) {
		return unknown
	}
	switch p[0] {
	case '{', '[':
		return document
	case ':':
		return events
	}
	for _, field := range []string{"data:", "event:", "id:", "retry:", "error:"} {
		switch {
		case bytes.HasPrefix(p, []byte(field)):
			return events
		case strings.HasPrefix(field, string(p)):
			return unknown
		}
	}
	return foreign
}

// Interface guards
var (
	_ http.ResponseWriter = (*capture)(nil)
	_ http.Flusher        = (*capture)(nil)
)
