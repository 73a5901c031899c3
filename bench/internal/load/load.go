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

// Package load sends requests over a fixed number of connections, each of them
// the next one as soon as the one before is answered, and takes the time.
package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// answerTime bounds one request: nothing here takes that long.
const answerTime = 30 * time.Second

// Result is what came of a load. Latencies are those of whole requests, First
// those up to the first byte of the answer's body.
type Result struct {
	Latencies []time.Duration
	First     []time.Duration
	Failed    int
	Err       error // of the first request that failed
}

// Requests returns the number of requests that were answered.
func (r *Result) Requests() int { return len(r.Latencies) }

// Add adds what came of another load.
func (r *Result) Add(o *Result) {
	r.Latencies = append(r.Latencies, o.Latencies...)
	r.First = append(r.First, o.First...)
	r.Failed += o.Failed
	if r.Err == nil {
		r.Err = o.Err
	}
}

// Client has open connections to one address.
type Client struct {
	conns []*conn
}

// Dial opens as many connections as there are requests; each sends its own.
func Dial(ctx context.Context, addr string, requests []*Request) (*Client, error) {
	c := &Client{}
	for _, r := range requests {
		one := &conn{addr: addr, request: r}
		if err := one.dial(ctx); err != nil {
			c.Close()
			return nil, err
		}
		c.conns = append(c.conns, one)
	}
	return c, nil
}

// Close closes the connections.
func (c *Client) Close() {
	for _, one := range c.conns {
		one.close()
	}
}

// Run sends requests for the time d, and waits for the answers to the last
// ones. It ends early, with an error in the result, when ctx does or when a
// connection cannot be made again after a failure.
func (c *Client) Run(ctx context.Context, d time.Duration) *Result {
	return c.each(func(one *conn, r *Result) {
		for end := time.Now().Add(d); ; {
			if !one.once(ctx, r) || !time.Now().Before(end) {
				return
			}
		}
	})
}

// Once sends one request on each connection.
func (c *Client) Once(ctx context.Context) *Result {
	return c.each(func(one *conn, r *Result) { one.once(ctx, r) })
}

func (c *Client) each(f func(*conn, *Result)) *Result {
	results := make([]Result, len(c.conns))
	var wg sync.WaitGroup
	for i, one := range c.conns {
		wg.Go(func() { f(one, &results[i]) })
	}
	wg.Wait()
	total := &Result{}
	for i := range results {
		total.Add(&results[i])
	}
	return total
}

// conn is one connection.
type conn struct {
	addr    string
	request *Request
	net     net.Conn
	in      *bufio.Reader
	scratch []byte
}

func (c *conn) dial(ctx context.Context) (err error) {
	var d net.Dialer
	if c.net, err = d.DialContext(ctx, "tcp", c.addr); err != nil {
		return fmt.Errorf("connecting to the gateway: %w", err)
	}
	if c.in == nil {
		c.in, c.scratch = bufio.NewReaderSize(c.net, 64<<10), make([]byte, 64<<10)
	} else {
		c.in.Reset(c.net)
	}
	return nil
}

func (c *conn) close() {
	if c.net != nil {
		_ = c.net.Close() // nothing is expected of it any more
	}
}

// once makes one exchange, on a new connection after a failure, and says
// whether another one can be made.
func (c *conn) once(ctx context.Context, r *Result) bool {
	start := time.Now()
	first, err := c.exchange(ctx, start)
	if err == nil {
		r.Latencies = append(r.Latencies, time.Since(start))
		r.First = append(r.First, first)
		return ctx.Err() == nil
	}
	if ctx.Err() != nil {
		return false // the time for it was over
	}
	r.Failed++
	if r.Err == nil {
		r.Err = err
	}
	c.close()
	return c.dial(ctx) == nil
}

var errStatus = errors.New("the answer is no 200")

// exchange sends the request and reads the answer to its end.
func (c *conn) exchange(ctx context.Context, start time.Time) (first time.Duration, err error) {
	if err := c.net.SetDeadline(start.Add(answerTime)); err != nil {
		return 0, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.net.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := c.net.Write(c.request.wire); err != nil {
		return 0, fmt.Errorf("sending the request: %w", err)
	}
	resp, err := http.ReadResponse(c.in, &http.Request{Method: c.request.method})
	if err != nil {
		return 0, fmt.Errorf("reading the answer: %w", err)
	}
	defer resp.Body.Close()
	for {
		n, err := resp.Body.Read(c.scratch)
		if n > 0 && first == 0 {
			first = time.Since(start)
		}
		if resp.StatusCode != http.StatusOK && n > 0 {
			return 0, fmt.Errorf("%w: %s: %.300s", errStatus, resp.Status, c.scratch[:n])
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("reading the answer's body: %w", err)
		}
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%w: %s", errStatus, resp.Status)
	}
	if resp.Close {
		c.close()
		return first, c.dial(ctx)
	}
	return first, nil
}

// Hold is requests whose answers have begun and are read as they come.
type Hold struct {
	client *Client
	cancel context.CancelFunc
	ended  sync.WaitGroup
	began  chan error
}

// Hold sends one request on each connection and returns when all answers have
// begun. The answers are read until Release.
func (c *Client) Hold(ctx context.Context) (*Hold, error) {
	held, cancel := context.WithCancel(ctx)
	h := &Hold{client: c, cancel: cancel, began: make(chan error, len(c.conns))}
	for _, one := range c.conns {
		h.ended.Go(func() { h.read(held, one) })
	}
	late := time.NewTimer(answerTime)
	defer late.Stop()
	for range c.conns {
		var err error
		select {
		case err = <-h.began:
		case <-late.C:
			err = fmt.Errorf("not all answers began within %s", answerTime)
		}
		if err != nil {
			h.Release()
			return nil, err
		}
	}
	return h, nil
}

func (h *Hold) read(ctx context.Context, c *conn) {
	stop := context.AfterFunc(ctx, c.close)
	defer stop()
	if _, err := c.net.Write(c.request.wire); err != nil {
		h.began <- err
		return
	}
	resp, err := http.ReadResponse(c.in, &http.Request{Method: c.request.method})
	if err != nil {
		h.began <- err
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		h.began <- fmt.Errorf("%w: %s", errStatus, resp.Status)
		return
	}
	if _, err := resp.Body.Read(c.scratch); err != nil {
		h.began <- err
		return
	}
	h.began <- nil
	_, _ = io.Copy(io.Discard, resp.Body) // ends with Release
}

// Release closes the connections and waits until nothing is read any more.
func (h *Hold) Release() {
	h.cancel()
	h.ended.Wait()
}
