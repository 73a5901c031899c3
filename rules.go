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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/local"
)

// A rule says what is wrong with a value and how to mend it, or nil. The rules
// are used twice: by the Caddyfile, which adds file and line, and when the
// configuration is loaded, for JSON and for values that placeholders hide.
type rule[T any] func(value T) error

// The words that options take.
const (
	offerRequested = "requested"
	offerAlways    = "always"
	onExitKeep     = "keep"
	onExitDelete   = "delete"
	onIdleDelete   = "delete"
	onIdlePause    = "pause"
)

const (
	minKeepalive = caddy.Duration(100 * time.Millisecond) // more often is no keep-alive but a flood
	minIdle      = caddy.Duration(time.Second)            // providers count timeouts in seconds
	minKeep      = caddy.Duration(time.Minute)            // paused sandboxes are looked for every two
	minMemory    = local.MinMemory
	minDisk      = local.MinDisk
	minProcesses = local.MinProcesses
	minSecret    = 16 // bytes; a shorter one can be guessed
)

var (
	toolNamePattern    = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	moduleNamePattern  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
	placeholderPattern = regexp.MustCompile(`^\{([^{}\s]+)\}$`)
	globalPlaceholder  = regexp.MustCompile(`\{(env|file|system|time)\.[^{}]*\}`)
)

// check applies a rule to a value that is set and names option and value in
// the error; the zero value stands for the default.
func check[T comparable](option string, value T, valid rule[T]) error {
	var unset T
	if value == unset {
		return nil
	}
	return apply(option, value, valid)
}

// checkSet is check for a value whose zero is no default.
func checkSet[T any](option string, value *T, valid rule[T]) error {
	if value == nil {
		return nil
	}
	return apply(option, *value, valid)
}

// checkAll applies a rule to each of several values.
func checkAll(option string, values []string, valid rule[string]) error {
	for i, value := range values {
		if err := apply(option, value, valid); err != nil {
			return err
		}
		if slices.Contains(values[:i], value) {
			return fmt.Errorf("%s %q: given twice: remove one", option, value)
		}
	}
	return nil
}

// apply applies a rule and names option and value in the error.
func apply[T any](option string, value T, valid rule[T]) error {
	if err := valid(value); err != nil {
		return fmt.Errorf("%s %s: %w", option, show(value), err)
	}
	return nil
}

// applySecret is apply for a value that must not be seen.
func applySecret(option, value string, valid rule[string]) error {
	if err := valid(value); err != nil {
		return fmt.Errorf("%s: %w", option, err)
	}
	return nil
}

// show writes a value as the Caddyfile does.
func show(value any) string {
	switch v := value.(type) {
	case caddy.Duration:
		return time.Duration(v).String()
	case string:
		return fmt.Sprintf("%q", v)
	default:
		return fmt.Sprint(v)
	}
}

// atLeast is the rule of numbers, sizes and durations.
func atLeast[T cmp.Ordered](least T) rule[T] {
	return func(value T) error {
		if value < least {
			return fmt.Errorf("must be at least %s", show(least))
		}
		return nil
	}
}

// atLeastBytes is atLeast for sizes that nobody writes in bytes.
func atLeastBytes(least int64) rule[int64] {
	return func(value int64) error {
		if value < least {
			return fmt.Errorf("must be at least %s", strings.Replace(humanize.IBytes(uint64(least)), ".0 ", " ", 1))
		}
		return nil
	}
}

func positive(value caddy.Duration) error {
	if value <= 0 {
		return errors.New("must be longer than 0, like 30s")
	}
	return nil
}

func oneOf(words ...string) rule[string] {
	return func(value string) error {
		if !slices.Contains(words, value) {
			return fmt.Errorf("must be %s", strings.Join(words, " or "))
		}
		return nil
	}
}

func validToolName(name string) error {
	if !toolNamePattern.MatchString(name) {
		return errors.New("must be 1 to 64 letters, digits, _ and -, because upstreams accept no other function names")
	}
	return nil
}

func validModule(name string) error {
	if !moduleNamePattern.MatchString(name) {
		return errors.New("must be the name of a Python module, like numpy")
	}
	return nil
}

func validTemplate(name string) error {
	if len(name) > 256 || strings.ContainsFunc(name, isUnprintable) {
		return errors.New("must be the name or id of a template, without spaces")
	}
	return nil
}

// anything is the rule of values that only their user can judge.
func anything(string) error { return nil }

// unlessPlaceholder leaves a value that is not known yet to the time when the
// configuration is loaded.
func unlessPlaceholder(valid rule[string]) rule[string] {
	return func(value string) error {
		if globalPlaceholder.MatchString(value) {
			return nil
		}
		return valid(value)
	}
}

// parseRate reads a rate like 5/s or 100/1h and returns the time between two.
func parseRate(rate string) (time.Duration, error) {
	invalid := errors.New("must be a number and a time, like 5/s or 100/1h")
	count, period, _ := strings.Cut(rate, "/")
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || period == "" {
		return 0, invalid
	}
	if period[0] < '0' || period[0] > '9' {
		period = "1" + period
	}
	d, err := caddy.ParseDuration(period)
	if err != nil || d < time.Duration(n) {
		return 0, invalid
	}
	return d / time.Duration(n), nil
}

func validRate(rate string) error {
	_, err := parseRate(rate)
	return err
}

func validKey(key string) error {
	if key == "" || strings.ContainsFunc(key, isUnprintable) {
		return errors.New("contains a space, a line break or another character that no key has: check where it comes from")
	}
	return nil
}

func validSecret(secret string) error {
	if len(secret) < minSecret {
		return fmt.Errorf("must have at least %d bytes: make one with openssl rand -hex 32", minSecret)
	}
	return nil
}

func validSessionID(placeholder string) error {
	if !placeholderPattern.MatchString(placeholder) {
		return errors.New("must be one placeholder, like {http.request.header.X-Session-Id}")
	}
	return nil
}

func validIdentity(placeholder string) error {
	match := placeholderPattern.FindStringSubmatch(placeholder)
	if match == nil {
		return errors.New("must be one placeholder, like {http.auth.user.id}")
	}
	if clientChooses(match[1]) {
		return errors.New("the client chooses this value and could enter the sessions of others: use {http.auth.user.id}; " +
			"where something trusted sets it, copy it with the vars directive and use {http.vars.NAME}")
	}
	return nil
}

// clientChooses reports whether a placeholder speaks of what the client sent.
func clientChooses(name string) bool {
	for _, prefix := range []string{"header.", "cookie.", "query.", "path.", "labels.", "re.", "http.regexp.", "file_match.", "http.matchers."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "host", "hostport", "method", "uri", "path", "query", "dir", "file", "scheme", "uuid":
		return true
	}
	rest, ofRequest := strings.CutPrefix(name, "http.request.")
	return ofRequest && rest != "remote" && !strings.HasPrefix(rest, "remote.") && !strings.HasPrefix(rest, "tls.client.")
}

// isUnprintable reports what has no place in a key or a name: everything but
// visible ASCII.
func isUnprintable(r rune) bool { return r <= ' ' || r > '~' }
