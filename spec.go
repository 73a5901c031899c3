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

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/local"
)

// backendSpec is everything that makes one backend's sandboxes different from
// another's. It holds secrets and is never printed. One of the two is set.
type backendSpec struct {
	e2b   *e2bSpec
	local *localSpec
}

type e2bSpec struct {
	apiKey, apiURL, domain, sandboxURL, template, secret string
	internet                                             bool
	maxRead                                              int64
}

type localSpec struct {
	python                string
	memory, disk, maxRead int64
	processes, warm       int
	preload               []string
}

// The kinds of backends, as the option sandbox has them.
const (
	engineE2B   = "e2b"
	engineLocal = "local"
)

// backend says which sandboxes are configured, or are the default here.
func (c *CodeInterpreter) backend() (backendSpec, error) {
	sandbox := c.Sandbox
	if sandbox == nil || (sandbox.E2B == nil && sandbox.Local == nil) {
		sandbox = new(Sandbox)
		if fromEnv(envAPIKey) != "" {
			sandbox.E2B = new(E2B)
		} else {
			sandbox.Local = new(Local)
		}
	}
	if sandbox.E2B != nil {
		spec, err := sandbox.E2B.spec(c.MaxRead)
		return backendSpec{e2b: spec}, within("sandbox e2b", err)
	}
	spec, err := sandbox.Local.spec(c.MaxRead)
	return backendSpec{local: spec}, within("sandbox local", err)
}

func (e *E2B) spec(maxRead int64) (*e2bSpec, error) {
	s := &e2bSpec{internet: orSet(e.Internet, defaultInternet), maxRead: or(maxRead, e2b.DefaultMaxRead)}
	for _, option := range []struct {
		target                        *string
		name, value, environment, def string
		tokens                        []string
	}{
		{&s.apiKey, "api_key", e.APIKey, envAPIKey, "", nil},
		{&s.domain, "domain", e.Domain, envDomain, e2b.DefaultDomain, nil},
		{&s.apiURL, "api_url", e.APIURL, envAPIURL, "", nil},
		{&s.sandboxURL, "sandbox_url", e.SandboxURL, envSandboxURL, "", []string{"port", "id", "domain"}},
		{&s.template, "template", e.Template, "", e2b.DefaultTemplate, nil},
		{&s.secret, "secret", e.Secret, "", "", nil},
	} {
		value, err := expand(option.name, option.value, option.tokens...)
		if err != nil {
			return nil, err
		}
		if value == "" && option.environment != "" {
			value = fromEnv(option.environment)
		}
		*option.target = or(value, option.def)
	}
	s.apiURL = strings.TrimRight(or(s.apiURL, "https://api."+s.domain), "/")
	return s, s.check()
}

func (s *e2bSpec) check() error {
	if s.apiKey == "" && s.hosted() {
		return errors.New("api_key: E2B needs one: set the environment variable E2B_API_KEY or the option, " +
			"with a key from https://e2b.dev/dashboard, or use sandbox local")
	}
	if s.apiKey != "" {
		if err := applySecret("api_key", s.apiKey, validKey); err != nil {
			return err
		}
	}
	if s.secret != "" {
		if err := applySecret("secret", s.secret, validSecret); err != nil {
			return err
		}
	}
	return apply("template", s.template, validTemplate)
}

// ofE2B completes an error of the client, which begins with "e2b: ".
func ofE2B(err error) error {
	if err != nil {
		return fmt.Errorf("sandbox %w", err)
	}
	return nil
}

// hosted is whether the control plane is E2B's own, where nothing works without a
// key.
func (s *e2bSpec) hosted() bool {
	api, err := url.Parse(s.apiURL)
	if err != nil {
		return false // the client says what is wrong with it
	}
	host := strings.ToLower(api.Hostname())
	for _, domain := range e2b.HostedDomains {
		if host == domain || strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}

func (l *Local) spec(maxRead int64) (*localSpec, error) {
	python, err := expand("python", l.Python)
	return &localSpec{
		python:    python,
		memory:    or(l.Memory, local.DefaultMemory),
		disk:      or(l.Disk, local.DefaultDisk),
		maxRead:   or(maxRead, local.DefaultMaxRead),
		processes: or(l.Processes, local.DefaultProcesses),
		warm:      orSet(l.Warm, defaultWarm),
		preload:   l.Preload,
	}, err
}

// config is what the server of local sandboxes needs, with the key that it asks
// its clients for.
func (l *localSpec) config(key string, logger *zap.Logger) local.Config {
	return local.Config{
		Python:    l.python,
		Memory:    l.memory,
		Disk:      l.disk,
		Processes: l.processes,
		Warm:      l.warm,
		Preload:   l.preload,
		MaxRead:   l.maxRead,
		APIKey:    key,
		Logger:    logger,
	}
}

func (s backendSpec) engine() string {
	if s.local != nil {
		return engineLocal
	}
	return engineE2B
}

// defaultMax is how many sandboxes there may be when nothing is configured.
func (s backendSpec) defaultMax() int {
	if s.local != nil {
		return defaultMaxLocal(machineMemory())
	}
	return defaultMaxRemote
}

// warm is how many sandboxes are started before anyone asks.
func (s backendSpec) warm() int {
	if s.local != nil {
		return s.local.warm
	}
	return 0
}
