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

package local

import (
	"context"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
)

// answer is a response on its way through Transport: the handler writes it while
// the client reads. Only the handler's goroutine calls its methods.
type answer struct {
	request *http.Request
	cancel  context.CancelFunc // of the handler's context
	header  http.Header
	status  int         // 0: not said yet
	frozen  http.Header // the headers as they were then
	body    *io.PipeWriter
	reader  *io.PipeReader
	sent    bool // ready is closed
	bodyOff bool // the status or the method allows no body

	ready    chan struct{} // closed when the client may look at the two below
	response *http.Response
	err      error
}

func newAnswer(r *http.Request, cancel context.CancelFunc) *answer {
	a := &answer{request: r, cancel: cancel, header: http.Header{}, ready: make(chan struct{})}
	a.reader, a.body = io.Pipe()
	return a
}

// serve runs the handler and ends the response, whatever the handler does.
func (a *answer) serve(h http.Handler, r *http.Request, log *zap.Logger) {
	defer func() {
		err := errBrokenAnswer
		switch v := recover(); v {
		case nil:
			if err = context.Cause(r.Context()); err == nil {
				a.send(nil)
				a.body.Close()
				return
			}
		case http.ErrAbortHandler:
		default:
			log.Error("a handler panicked", zap.Any("panic", v), zap.Stack("stack"))
		}
		a.body.CloseWithError(err)
		if !a.sent {
			a.sent, a.err = true, err
			close(a.ready)
		}
	}()
	h.ServeHTTP(a, r)
}

// Header returns the headers, which count until they are sent.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader settles status and headers, which are sent with what follows.
func (a *answer) WriteHeader(status int) {
	// Statuses below 200 announce another one; they help real connections only.
	if a.status == 0 && status >= http.StatusOK {
		a.status, a.frozen = status, a.header.Clone()
	}
}

// Write sends a part of the body and returns when the client has read it.
func (a *answer) Write(p []byte) (int, error) {
	a.send(p)
	if a.bodyOff {
		if a.request.Method == http.MethodHead {
			return len(p), nil
		}
		return 0, http.ErrBodyNotAllowed
	}
	return a.body.Write(p)
}

// FlushError sends the headers; nothing else is ever held back.
func (a *answer) FlushError() error {
	a.send(nil)
	return nil
}

// Flush is FlushError for those who ask for an http.Flusher.
func (a *answer) Flush() { a.send(nil) }

// SetWriteDeadline breaks the answer at a time, unless it has ended by then. There is
// no way back. It may be called by others than the handler.
func (a *answer) SetWriteDeadline(t time.Time) error {
	if !t.IsZero() {
		time.AfterFunc(time.Until(t), func() { a.body.CloseWithError(os.ErrDeadlineExceeded) })
	}
	return nil
}

// send lets the client have the response, once. first is the beginning of the
// body, where known, to tell its type by.
func (a *answer) send(first []byte) {
	if a.sent {
		return
	}
	a.sent = true
	a.WriteHeader(http.StatusOK)
	status, header := a.status, a.frozen
	if _, set := header["Content-Type"]; !set && len(first) > 0 {
		header.Set("Content-Type", http.DetectContentType(first))
	}
	length, err := strconv.ParseInt(header.Get("Content-Length"), 10, 64)
	if err != nil || length < 0 {
		length = -1
	}
	a.bodyOff = a.request.Method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified
	if status == http.StatusNoContent {
		length = 0
	}
	a.response = &http.Response{
		Status:        strconv.Itoa(status) + " " + http.StatusText(status),
		StatusCode:    status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          &answerBody{PipeReader: a.reader, cancel: a.cancel},
		ContentLength: length,
		Request:       a.request,
	}
	close(a.ready)
}

// answerBody is the body as the client reads it.
type answerBody struct {
	*io.PipeReader
	cancel context.CancelFunc
	once   sync.Once
}

// Close ends the handler's context; later writes of the handler fail.
func (b *answerBody) Close() error {
	b.once.Do(b.cancel)
	return b.PipeReader.Close()
}
