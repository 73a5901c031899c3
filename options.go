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

package codeinterpreter

import "github.com/caddyserver/caddy/v2"

// Sandbox says where code runs: exactly one of its fields is set.
type Sandbox struct {
	// Sandboxes of E2B, of a self-hosted E2B, or of another server that speaks
	// its protocol.
	E2B *E2B `json:"e2b,omitempty"`

	// Sandboxes on this machine: isolated Python processes. They need Linux,
	// Python 3 and bubblewrap, and end with the Caddy process. A self-test when
	// the configuration is loaded makes sure that they work.
	Local *Local `json:"local,omitempty"`
}

// E2B says which E2B-compatible server makes the sandboxes. Placeholders such
// as `{env.NAME}` and `{file./path}` in its strings are resolved when the
// configuration is loaded; one that is unknown or empty is an error.
type E2B struct {
	// The API key. Servers other than E2B's own may need none. Default: the
	// environment variable `E2B_API_KEY`; without it, E2B's own servers are an
	// error.
	APIKey string `json:"api_key,omitempty"`

	// The base URL of the control plane, with the scheme http or https.
	// Default: the environment variable `E2B_API_URL`, else `https://api.`
	// followed by the domain, which makes `https://api.e2b.app`.
	APIURL string `json:"api_url,omitempty"`

	// The domain of the sandboxes, as host or host:port, when the server does
	// not name one. Default: the environment variable `E2B_DOMAIN`, else
	// `e2b.app`.
	Domain string `json:"domain,omitempty"`

	// Where to reach the sandboxes when it is not at
	// `https://{port}-{id}.{domain}`: one base URL for all, or a template with
	// the tokens `{port}`, `{id}` and `{domain}`. Requests carry the headers
	// `E2b-Sandbox-Id` and `E2b-Sandbox-Port` in any case. Default: the
	// environment variable `E2B_SANDBOX_URL`, else none.
	SandboxURL string `json:"sandbox_url,omitempty"`

	// The template of new sandboxes; it must contain E2B's code interpreter.
	// Default: `code-interpreter-v1`.
	Template string `json:"template,omitempty"`

	// Whether code may reach the internet. Default: true.
	Internet *bool `json:"internet,omitempty"`

	// The secret that the names of sessions are hashed with before they are
	// stored with the sandbox, at least 16 bytes. Gateways that have it in
	// common find each other's sessions. Gateways with the same API key but
	// unrelated users need different ones. Default: derived from the API key;
	// without a key a random one, with the warning that sessions do not
	// survive a restart.
	Secret string `json:"secret,omitempty"`
}

// Local limits the sandboxes on this machine. Limits hold for each sandbox.
type Local struct {
	// The Python interpreter: a path, or a name to look up in PATH. It may be
	// one of a virtual environment. Placeholders such as `{env.NAME}` are
	// resolved when the configuration is loaded. Default: `/usr/bin/python3`,
	// else `python3` from PATH.
	Python string `json:"python,omitempty"`

	// Memory in bytes, at least 64 MiB. Default: 1073741824 (1 GiB).
	Memory int64 `json:"memory,omitempty"`

	// Processes and threads, at least 4. Default: 64.
	Processes int `json:"processes,omitempty"`

	// Space for files in bytes, at least 1 MiB. Default: 268435456 (256 MiB).
	Disk int64 `json:"disk,omitempty"`

	// How many sandboxes are kept started before anyone asks for one.
	// 0 starts each on demand. No more than `sessions.max`. Default: 1.
	Warm *int `json:"warm,omitempty"`

	// Modules that a sandbox imports when it starts, such as `numpy`. It then
	// takes longer to start, needs more memory, and its first `import` is
	// instant. Default: none.
	Preload []string `json:"preload,omitempty"`
}

// Sessions says which requests share a sandbox, for how long, and how many
// sandboxes there may be.
type Sessions struct {
	// How long a session lives after its last use. At least 1s.
	// Default: 15m.
	Idle caddy.Duration `json:"idle,omitempty"`

	// How many sessions a caller may have. A further one ends the caller's
	// least recently used idle session; when all are busy the request is
	// answered with 429. At least 1. Default: 10.
	MaxPerIdentity int `json:"max_per_identity,omitempty"`

	// How many sandboxes may exist at once, those of requests without a session
	// included. Set it below the concurrency that your E2B plan allows. At
	// least 1. Default: 1000 for E2B; for local sandboxes the machine's memory
	// divided by 128 MiB, at most 200.
	Max int `json:"max,omitempty"`

	// Who the caller is: one placeholder, whose value the client must not be
	// able to choose, such as `{http.auth.user.id}` or
	// `{http.request.tls.client.subject}`. Placeholders of what the client
	// sends (headers, cookies, query, path, body, host) are an error. A request with the
	// tool for which it is empty is answered with 401. Default:
	// the user whom Caddy authenticated, else the API key of the request, else
	// the client's address.
	Identity string `json:"identity,omitempty"`

	// Where the session's id comes from when a request has no
	// `metadata.session_id`: one placeholder, such as
	// `{http.request.header.X-Session-Id}`. A header used for it does not go
	// upstream with chat requests. Default: none.
	ID string `json:"id,omitempty"`

	// What becomes of sessions when Caddy stops. With `keep` those of E2B are
	// left to their timeout, and the next process finds them again. With
	// `delete` those that only this process has used end at once. Local
	// sandboxes always end. Default: `keep`.
	OnExit string `json:"on_exit,omitempty"`

	// Whether several gateways behind one load balancer share sessions: they
	// agree in Caddy's configured storage, which must be one that all of them
	// use. Not for local sandboxes. Default: false.
	Shared bool `json:"shared,omitempty"`

	// What becomes of a session that is idle for too long. With `delete` its
	// sandbox ends. With `pause` the provider stores it, it costs nothing, and
	// the next request goes on with its variables and files. A provider that
	// cannot pause deletes instead, and an error in the log says so. Not for
	// local sandboxes. Default: `delete`.
	OnIdle string `json:"on_idle,omitempty"`

	// How long a session stays paused before it is deleted, with
	// `on_idle pause`. At least 1m. Default: 7d.
	Keep caddy.Duration `json:"keep,omitempty"`

	// How many sandboxes are created at most, as number/duration: `5/s` or
	// `100/1h`. They are spaced evenly, and callers who wait get one each in
	// turn. One who would wait longer than `sandbox_timeout` gets none, and the
	// model is told. Set it to your E2B plan's rate; with several gateways, to
	// each one's share of it. Default: none.
	CreateRate string `json:"create_rate,omitempty"`
}
