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

// Command cmd serves the scripted model on a port, for demos and for tests
// that start their upstream as a process. It is built as bin/scriptedmodel.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/caddytest/scriptedmodel"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on; port 0 takes a free one")
	key := flag.String("key", os.Getenv("SCRIPTEDMODEL_KEY"), "API key that requests must carry; default $SCRIPTEDMODEL_KEY, empty: none")
	name := flag.String("model", "", "name in the list of models")
	delay := flag.Duration("delay", 0, "time between two chunks of a stream")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *listen, &scriptedmodel.Model{APIKey: *key, Name: *name, Delay: *delay}); err != nil {
		fmt.Fprintln(os.Stderr, "scriptedmodel:", err)
		os.Exit(1)
	}
}

// serve serves the model until ctx ends. The first line on standard output is
// the base URL for clients.
func serve(ctx context.Context, address string, model *scriptedmodel.Model) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/v1\n", listener.Addr())

	server := &http.Server{Handler: model, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // streams may be silent for long: no grace
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
