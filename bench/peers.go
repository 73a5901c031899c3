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
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/gateway"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/measure"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/report"
)

// nginxConfig has one process, as Caddy has, and streams as proxies in front
// of models do.
const nginxConfig = `daemon off;
master_process off;
pid %[1]s/nginx.pid;
error_log stderr error;
events { worker_connections 4096; }
http {
	access_log off;
	client_max_body_size 64m;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	upstream model { server %[3]s; keepalive 64; }
	server {
		listen 127.0.0.1:%[2]d;
		keepalive_requests 1000000;
		location / {
			proxy_pass http://model;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_buffering off;
			proxy_request_buffering off;
		}
	}
}
`

// peers returns the gateways that the flags name.
func (o options) peers() []peer {
	var peers []peer
	if o.nginx != "" {
		peers = append(peers, peer{"nginx", o.nginxCommand, func(string) http.Header { return nil }, true})
	}
	if o.portkey != "" {
		// Streams fail in version 1.15.2 with Node 20: "TypeError: immutable".
		peers = append(peers, peer{"portkey", o.portkeyCommand, portkeyHeader, false})
	}
	return peers
}

// row compares the peer to plain Caddy.
func (p peer) row(id, title string, r measure.Rounds) report.Row {
	return report.Ratio(id+"-"+p.name, title+": CPU per request of "+p.name, report.Micros, r.Series(p.name, measure.Sample.PerRequest),
		r.Series("plain", measure.Sample.PerRequest), r.Series("control", measure.Sample.PerRequest), report.Info())
}

func (o options) nginxCommand(upstream string) gateway.Command {
	return gateway.Command{Name: "nginx", Args: func(dir string, port int) ([]string, error) {
		file := filepath.Join(dir, "nginx.conf")
		if err := os.WriteFile(file, fmt.Appendf(nil, nginxConfig, dir, port, upstream), 0o600); err != nil { //nolint:gosec // a file in the process's own directory
			return nil, err
		}
		return []string{o.nginx, "-p", dir, "-c", file}, nil
	}}
}

func (o options) portkeyCommand(string) gateway.Command {
	return gateway.Command{Name: "portkey", Args: func(_ string, port int) ([]string, error) {
		return []string{"node", o.portkey, "--port=" + strconv.Itoa(port), "--headless"}, nil
	}}
}

func portkeyHeader(upstream string) http.Header {
	return http.Header{"X-Portkey-Provider": {"openai"}, "X-Portkey-Custom-Host": {"http://" + upstream + "/v1"}}
}
