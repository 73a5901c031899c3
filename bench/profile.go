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

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/gateway"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/load"
)

// profiled are the loads that profiles are taken under.
func profiled() map[string][]*load.Request {
	plain := func(c load.Content, size, conns int) []*load.Request {
		return same(conns, load.ChatRequest(load.Chat{Content: c, Size: size}, "bench-key"))
	}
	one := stream(true)
	one.Script.Chunks = 1
	return map[string][]*load.Request{
		"1kb":        plain(load.Text, kB, 16),
		"100kb":      plain(load.Text, 100*kB, 16),
		"5mb-images": plain(load.Images, 5*mB, 4),
		"5mb-code":   plain(load.Code, 5*mB, 4),
		"tool-one":   same(8, load.ChatRequest(one, "bench-key")),
		"tool-sse":   same(8, load.ChatRequest(stream(true), "bench-key")),
		"turn-json":  turns(16, loops, false),
		"turn-sse":   turns(16, loops, true),
	}
}

// profile writes a CPU profile and one of all allocations of each load, for
// "go tool pprof".
func (o options) profile(ctx context.Context, stderr io.Writer) error {
	expression, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	b, err := o.start(ctx, full)
	if err != nil {
		return err
	}
	defer b.close()
	if err := os.MkdirAll(o.out, 0o750); err != nil {
		return err
	}
	for name, requests := range profiled() {
		if !expression.MatchString(name) {
			continue
		}
		n, err := b.profile(ctx, filepath.Join(o.out, name), requests, o.duration)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(stderr, "%s: %d requests\n", name, n)
	}
	return nil
}

// profile takes the profiles from the admin API of Caddy while it is under a
// load, and returns the number of requests.
func (b *bench) profile(ctx context.Context, file string, requests []*load.Request, d time.Duration) (int, error) {
	admin, err := freeAddr(ctx)
	if err != nil {
		return 0, err
	}
	caddy := b.caddy
	caddy.Admin = admin
	p, err := gateway.Start(ctx, caddy.WithTool("profiled", b.boxes))
	if err != nil {
		return 0, err
	}
	defer p.Stop()
	c, err := load.Dial(ctx, p.Addr, requests)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	fetched := make(chan error, 1)
	go func() {
		fetched <- errors.Join(
			fetch(ctx, "http://"+admin+"/debug/pprof/profile?seconds="+strconv.Itoa(max(int(d.Seconds()), 1)), file+".cpu.pprof"),
			fetch(ctx, "http://"+admin+"/debug/pprof/allocs", file+".allocs.pprof"),
		)
	}()
	result := c.Run(ctx, d+500*time.Millisecond)
	return result.Requests(), errors.Join(<-fetched, result.Err)
}

func freeAddr(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// fetch saves what a URL has.
func fetch(ctx context.Context, url, file string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("fetching %s: %s", url, resp.Status)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}
