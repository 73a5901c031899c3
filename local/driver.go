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
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// maxLine bounds a line of the driver's, which in turn bounds those of its
	// kernels: an image is one line.
	maxLine = 17 << 20
	// answerTimeout is how long the driver may take for anything but a run.
	answerTimeout = 15 * time.Second
	// writeTimeout is how long the driver may leave a command unread.
	writeTimeout = 5 * time.Second
	// lastWordsTimeout is how long the last events of a sandbox that has ended wait for
	// their readers.
	lastWordsTimeout = 2 * time.Second
)

// command is what the gateway tells the driver; one JSON line each.
type command struct {
	Op       string            `json:"op"`
	Preload  []string          `json:"preload,omitempty"`
	Home     string            `json:"home,omitempty"`
	Context  string            `json:"context,omitempty"`
	Run      string            `json:"run,omitempty"`
	Language string            `json:"language,omitempty"`
	Cwd      string            `json:"cwd,omitempty"`
	Code     *string           `json:"code,omitempty"`
	EnvVars  map[string]string `json:"env_vars,omitempty"` // of the run

	SandboxEnvVars map[string]string `json:"sandbox_env_vars,omitempty"` // of all of them, until code changes them
}

// reply is what the driver says that is no event of a run.
type reply struct {
	Type          string            `json:"type"`
	Context       string            `json:"context"`
	Message       string            `json:"message"`
	Python        string            `json:"python"`
	PreloadErrors map[string]string `json:"preload_errors"`
}

// driver speaks with the process inside the sandbox that keeps the kernels. Its
// lines come from where untrusted code runs: they may be anything.
type driver struct {
	in  deadlineWriter
	out *bufio.Reader

	writing sync.Mutex

	mu      sync.Mutex
	runs    map[string]*run         // by id
	waiting map[string]chan<- reply // by context; "" waits for ready
	err     error                   // why it ended; set before done is closed
	done    chan struct{}

	deaf chan struct{} // closed when events are no longer waited with
}

type deadlineWriter interface {
	io.Writer
	SetWriteDeadline(time.Time) error
}

// newDriver returns a driver over the two pipes; listen has to run.
func newDriver(in deadlineWriter, out io.Reader) *driver {
	return &driver{
		in:      in,
		out:     bufio.NewReaderSize(out, 32<<10),
		runs:    map[string]*run{},
		waiting: map[string]chan<- reply{},
		done:    make(chan struct{}),
		deaf:    make(chan struct{}),
	}
}

// hurry gives up on readers that do not read, a while after the driver's process
// has ended.
func (d *driver) hurry(ended <-chan struct{}) {
	select {
	case <-ended:
	case <-d.done:
		return
	}
	select {
	case <-time.After(lastWordsTimeout):
		close(d.deaf)
	case <-d.done:
	}
}

// listen hands out what the driver says until it ends or breaks the protocol.
func (d *driver) listen() {
	err := d.read()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
	close(d.done)
}

func (d *driver) read() error {
	for {
		line, err := readLine(d.out, maxLine)
		if err != nil {
			return err
		}
		if event, ok := parseEvent(line); ok {
			d.deliver(event)
			continue
		}
		var a reply
		if json.Unmarshal(line, &a) != nil {
			continue // noise
		}
		d.mu.Lock()
		waiter := d.waiting[a.Context]
		delete(d.waiting, a.Context)
		d.mu.Unlock()
		if waiter != nil {
			waiter <- a // has room for one
		}
	}
}

// deliver passes an event to its run, waiting as long as the run's reader does not
// take it: output is produced no faster than it is read.
func (d *driver) deliver(e event) {
	d.mu.Lock()
	r := d.runs[e.run]
	if r != nil && r.context != e.context {
		r = nil
	}
	if r != nil && e.kind == kindEnd {
		delete(d.runs, e.run)
	}
	d.mu.Unlock()
	if r == nil {
		return
	}
	select {
	case r.events <- e:
	case <-r.abandoned:
	case <-d.deaf:
	}
	if e.kind == kindEnd {
		close(r.ended)
	}
}

// start sends the configuration and waits until the driver is ready.
func (d *driver) start(preload []string, timeout time.Duration) (reply, error) {
	return d.ask(command{Op: "start", Preload: preload, Home: sandboxHome}, timeout)
}

// ask sends a command and waits for the answer about its context. One command per
// context at a time.
func (d *driver) ask(c command, timeout time.Duration) (reply, error) {
	answered := make(chan reply, 1)
	d.mu.Lock()
	d.waiting[c.Context] = answered
	d.mu.Unlock()
	if err := d.send(c); err != nil {
		return reply{}, err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case a := <-answered:
		if a.Type == "refused" {
			return a, &refusedError{message: a.Message}
		}
		return a, nil
	case <-d.done:
		return reply{}, d.ended()
	case <-timer.C:
		return reply{}, fmt.Errorf("the sandbox did not answer %q within %v", c.Op, timeout)
	}
}

// execute starts a run, whose events the caller takes from it.
func (d *driver) execute(c command) (*run, error) {
	r := &run{
		context:   c.Context,
		id:        c.Run,
		events:    make(chan event, 16),
		abandoned: make(chan struct{}),
		ended:     make(chan struct{}),
	}
	d.mu.Lock()
	d.runs[r.id] = r
	d.mu.Unlock()
	return r, d.send(c)
}

// send writes one command.
func (d *driver) send(c command) error {
	line, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encoding a command: %w", err)
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	if err := d.in.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("sending %q to the sandbox: %w", c.Op, err)
	}
	if _, err := d.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("sending %q to the sandbox: %w", c.Op, err)
	}
	return nil
}

// ended returns why the driver is gone.
func (d *driver) ended() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil || errors.Is(d.err, io.EOF) {
		return errors.New("the sandbox has ended")
	}
	return fmt.Errorf("the sandbox has ended: %w", d.err)
}

// refusedError is the driver's no, in words for the caller.
type refusedError struct{ message string }

func (e *refusedError) Error() string { return e.message }

// run is one execution. events ends with end_of_execution, unless the driver ends.
type run struct {
	context, id string
	events      chan event
	abandoned   chan struct{} // closed by who reads events no more
	ended       chan struct{} // closed after end_of_execution
}

// event is one line of a run.
type event struct {
	context, run, kind string
	body               []byte // the line as a client of E2B gets it, with its newline
}

// kindEnd is the type of the event that ends a run.
const kindEnd = "end_of_execution"

// parseEvent splits a line that begins with context, run and type, in this order
// and without escapes: the driver writes them so.
func parseEvent(line []byte) (event, bool) {
	var e event
	rest := line
	ok := cut(&rest, "{") && field(&rest, "context", &e.context) && cut(&rest, ",") &&
		field(&rest, "run", &e.run) && cut(&rest, ",")
	if !ok {
		return e, false
	}
	object := rest
	if !field(&rest, "type", &e.kind) {
		return e, false
	}
	e.body = make([]byte, 0, len(object)+2)
	e.body = append(e.body, '{')
	e.body = append(e.body, bytes.TrimLeft(object, " ")...)
	e.body = append(e.body, '\n')
	return e, true
}

// field takes `"name": "value"` from rest.
func field(rest *[]byte, name string, value *string) bool {
	if !cut(rest, `"`) || !cut(rest, name) || !cut(rest, `"`) || !cut(rest, ":") || !cut(rest, `"`) {
		return false
	}
	end := bytes.IndexAny(*rest, `"\`)
	if end < 0 || (*rest)[end] == '\\' {
		return false
	}
	*value = string((*rest)[:end])
	*rest = (*rest)[end+1:]
	return true
}

// cut takes a token from rest, with spaces before it.
func cut(rest *[]byte, token string) bool {
	after, ok := bytes.CutPrefix(bytes.TrimLeft(*rest, " "), []byte(token))
	if ok {
		*rest = after
	}
	return ok
}

// errLineTooLong is a driver that breaks the protocol.
var errLineTooLong = errors.New("a line of the protocol is too long")

// readLine returns the next line without its end. The line is the caller's only
// until the next call when it fits into the reader's buffer.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err == nil {
		return line[:len(line)-1], nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	long := bytes.Clone(line)
	for {
		line, err = r.ReadSlice('\n')
		long = append(long, line...)
		if len(long) > limit {
			return nil, errLineTooLong
		}
		if err == nil {
			return long[:len(long)-1], nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}
