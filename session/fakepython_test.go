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
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

func (f *fakeE2B) execute(r *http.Request, b *fakeBox, code, contextID string) *http.Response {
	if contextID == "" {
		contextID = "default"
	}
	c := b.contexts[contextID]
	if c == nil {
		return answer(r, http.StatusNotFound, "Context "+contextID+" not found")
	}
	reader, writer := io.Pipe()
	gone := make(chan struct{}) // the caller has left
	resp := answer(r, http.StatusOK, "")
	resp.ContentLength = -1
	resp.Body = &closing{PipeReader: reader, gone: gone}
	b.attached++
	detach := sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		b.attached--
	})
	context.AfterFunc(r.Context(), detach)
	f.runs.Go(func() {
		_ = writer.CloseWithError(f.interpret(b, c, code, writer, gone, r.Context()))
		detach()
	})
	return resp
}

// closing tells when the caller closes the body.
type closing struct {
	*io.PipeReader
	gone chan struct{}
	once sync.Once
}

func (c *closing) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.PipeReader.Close()
}

var errCut = errors.New("connection reset by peer")

// interpret waits for the context and runs a program in it.
func (f *fakeE2B) interpret(b *fakeBox, c *fakeContext, code string, out io.Writer, gone chan struct{}, ctx context.Context) error {
	f.mu.Lock()
	restart := c.restart
	f.mu.Unlock()
	select {
	case <-c.free:
		defer func() { c.free <- struct{}{} }()
	case <-b.killed:
		return errCut
	case <-gone:
		return errCut
	}
	left := make(chan struct{}) // the interrupt has arrived
	stop := make(chan struct{})
	defer close(stop)
	f.runs.Go(func() {
		select {
		case <-gone:
		case <-ctx.Done():
		case <-stop:
			return
		}
		time.Sleep(f.interrupt)
		close(left)
	})

	f.mu.Lock()
	if restart != c.restart {
		restart = c.restart // it was restarted while this program waited
	}
	c.count++
	if code != probe {
		f.programs = append(f.programs, code)
	}
	f.mu.Unlock()
	write := func(event map[string]any) { _, _ = io.WriteString(out, encode(event)+"\n") }
	write(map[string]any{"type": "number_of_executions", "execution_count": c.count})
	for line := range strings.SplitSeq(code, "\n") {
		if done, err := f.command(b, c, line, write, command{left: left, restart: restart}); done || err != nil {
			if err != nil {
				return err
			}
			break
		}
	}
	write(map[string]any{"type": "end_of_execution"})
	return nil
}

// command is what can end one.
type command struct {
	left, restart chan struct{}
}

// command runs one line. It returns true when the program ends with it.
func (f *fakeE2B) command(b *fakeBox, c *fakeContext, line string, write func(map[string]any), end command) (bool, error) {
	word, rest, _ := strings.Cut(line, " ")
	fail := func(name, value string) {
		write(map[string]any{"type": "error", "name": name, "value": value, "traceback": name})
	}
	var wake <-chan time.Time
	left := end.left
	switch word {
	case "print":
		f.mu.Lock()
		value, ok := c.vars[rest]
		f.mu.Unlock()
		if !ok {
			fail("NameError", rest)
			return true, nil
		}
		write(map[string]any{"type": "stdout", "text": value})
		return false, nil
	case "get": // print, but nothing for a variable that is not there
		f.mu.Lock()
		value := c.vars[rest]
		f.mu.Unlock()
		write(map[string]any{"type": "stdout", "text": value})
		return false, nil
	case "say":
		write(map[string]any{"type": "stdout", "text": rest})
		return false, nil
	case "exit":
		f.mu.Lock()
		c.vars, c.count = map[string]string{}, 0
		b.resets++
		f.mu.Unlock()
		fail("ContextRestarting", "Context was restarted")
		return true, nil
	case "sleep":
		d, err := time.ParseDuration(rest)
		if err != nil {
			panic(err)
		}
		wake = time.After(d)
	case "spin":
	case "wedge":
		left = nil
	case probe:
		return false, nil
	default:
		name, value, ok := strings.Cut(line, " = ")
		if !ok {
			panic("no such command: " + line)
		}
		f.mu.Lock()
		c.vars[name] = value
		f.mu.Unlock()
		return false, nil
	}
	for {
		f.mu.Lock()
		rest := time.Until(b.end)
		f.mu.Unlock()
		if rest <= 0 {
			return true, errCut
		}
		select {
		case <-wake:
			return false, nil
		case <-left:
			return true, errCut
		case <-b.killed:
			return true, errCut
		case <-end.restart:
			fail("ContextRestarting", "Context was restarted")
			return true, nil
		case <-time.After(rest): // it may have been extended meanwhile
		}
	}
}
