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
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// check holds the configuration to the rules, for what the Caddyfile has not
// read. Placeholders of the sandbox are not resolved yet.
func (c *CodeInterpreter) check() error {
	return cmp.Or(
		check("offer", c.Offer, oneOf(offerRequested, offerAlways)),
		check("tool_name", c.ToolName, validToolName),
		check("max_rounds", c.MaxRounds, atLeast(1)),
		check("exec_timeout", c.ExecTimeout, positive),
		check("sandbox_timeout", c.SandboxTimeout, positive),
		check("queue_timeout", c.QueueTimeout, positive),
		check("request_timeout", c.RequestTimeout, positive),
		check("max_output", c.MaxOutput, atLeast[int64](1)),
		check("max_body", c.MaxBody, atLeast[int64](1)),
		check("max_read", c.MaxRead, atLeast[int64](1)),
		checkSet("max_images", c.MaxImages, atLeast[int64](0)),
		check("keepalive", c.Keepalive, atLeast(minKeepalive)),
		c.Sessions.check(),
		c.Sandbox.check(),
	)
}

func (s *Sessions) check() error {
	if s == nil {
		return nil
	}
	return within("sessions", cmp.Or(
		check("idle", s.Idle, atLeast(minIdle)),
		check("max_per_identity", s.MaxPerIdentity, atLeast(1)),
		check("max", s.Max, atLeast(1)),
		check("identity", s.Identity, validIdentity),
		check("id", s.ID, validSessionID),
		check("on_exit", s.OnExit, oneOf(onExitKeep, onExitDelete)),
		check("on_idle", s.OnIdle, oneOf(onIdleDelete, onIdlePause)),
		check("keep", s.Keep, atLeast(minKeep)),
		check("create_rate", s.CreateRate, validRate),
	))
}

// checkRemote refuses what sandboxes on this machine do not offer.
func (s *Sessions) checkRemote() error {
	switch {
	case s.Shared:
		return errors.New("sessions: shared: local sandboxes end with their process and are reached by no other: remove shared, or use sandbox e2b")
	case s.OnIdle == onIdlePause:
		return errors.New("sessions: on_idle pause: local sandboxes cannot be paused: remove it, or use sandbox e2b")
	}
	return nil
}

func (s *Sandbox) check() error {
	switch {
	case s == nil:
		return nil
	case s.E2B != nil && s.Local != nil:
		return errors.New("sandbox: both e2b and local are given: remove one of the two")
	case s.Local != nil:
		return within("sandbox local", s.Local.check())
	default:
		return nil // e2b consists of what placeholders may hide
	}
}

func (l *Local) check() error {
	return cmp.Or(
		check("memory", l.Memory, atLeastBytes(minMemory)),
		check("processes", l.Processes, atLeast(minProcesses)),
		check("disk", l.Disk, atLeastBytes(minDisk)),
		checkSet("warm", l.Warm, atLeast(0)),
		checkAll("preload", l.Preload, validModule),
	)
}

// within says in which part of the configuration an error is.
func within(part string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	return nil
}

// limits returns the limits of sandboxes and sessions, defaults filled in.
func (c *CodeInterpreter) limits(spec backendSpec) (session.Limits, error) {
	sessions := c.Sessions
	if sessions == nil {
		sessions = new(Sessions)
	}
	if spec.local != nil {
		if err := sessions.checkRemote(); err != nil {
			return session.Limits{}, err
		}
	}
	request := c.requestTimeout()
	limits := session.Limits{
		Idle:           orDuration(sessions.Idle, defaultIdle),
		ExecTimeout:    orDuration(c.ExecTimeout, min(defaultExecTimeout, request)),
		SandboxTimeout: orDuration(c.SandboxTimeout, defaultSandboxTimeout),
		QueueTimeout:   orDuration(c.QueueTimeout, defaultQueueTimeout),
		MaxPerIdentity: or(sessions.MaxPerIdentity, defaultMaxPerIdentity),
		Max:            or(sessions.Max, spec.defaultMax()),
		Pause:          or(sessions.OnIdle, defaultOnIdle) == onIdlePause,
		Keep:           orDuration(sessions.Keep, defaultKeep),
		DeleteOnExit:   or(sessions.OnExit, defaultOnExit) == onExitDelete,
	}
	if sessions.CreateRate != "" {
		every, err := parseRate(sessions.CreateRate)
		if err != nil {
			return limits, within("sessions: create_rate", err)
		}
		limits.CreateEvery = every
	}
	if limits.ExecTimeout > request {
		return limits, fmt.Errorf("exec_timeout %v: must not be longer than request_timeout, which is %v: shorten it, or raise request_timeout",
			limits.ExecTimeout, request)
	}
	if spec.warm() > limits.Max {
		return limits, fmt.Errorf("sandbox local: warm %d: must not be more than sessions max, which is %d: lower it, or raise sessions max", spec.warm(), limits.Max)
	}
	return limits, nil
}

func (c *CodeInterpreter) requestTimeout() time.Duration {
	return orDuration(c.RequestTimeout, defaultRequestTimeout)
}
