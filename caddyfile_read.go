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
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// options are what a block may contain, by name. An option is called with its
// name as the current token and reads what follows.
type options map[string]func(d *caddyfile.Dispenser) error

// A setter takes an argument of an option into the configuration. Its error
// names the option, the argument unless that is a secret, and the mend.
type setter func(option, arg string) error

// readBlock reads the block of an owner, which may be absent.
func readBlock(d *caddyfile.Dispenser, owner string, known options) error {
	lines := make(map[string]int, len(known))
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		read, ok := known[name]
		if !ok {
			return d.Errf("%s: unrecognized option '%s': the options are %s",
				owner, name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if line, ok := lines[name]; ok {
			return d.Errf("%s: %s is already given in line %d: remove one of the two", owner, name, line)
		}
		lines[name] = d.Line()
		if err := read(d); err != nil {
			return err
		}
	}
	return nil
}

// one is an option with one argument and without a block.
func one(usage string, set setter) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		if err := readArg(d, usage, set); err != nil {
			return err
		}
		return noBlock(d, name, usage)
	}
}

// readArg reads the one argument of an option. A block may follow.
func readArg(d *caddyfile.Dispenser, usage string, set setter) error {
	name := d.Val()
	if !d.NextArg() {
		return d.Errf("%s: the value is missing: write %s %s", name, name, usage)
	}
	arg := d.Val()
	if d.NextArg() {
		return d.Errf("%s: unexpected further argument: write %s %s, with quotes around a value that contains spaces", name, name, usage)
	}
	return located(d, set(name, arg))
}

// several is an option with one argument or more and without a block.
func several(usage string, set func(option string, args []string) error) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		args := d.RemainingArgs()
		if len(args) == 0 {
			return d.Errf("%s: the values are missing: write %s %s", name, name, usage)
		}
		if err := located(d, set(name, args)); err != nil {
			return err
		}
		return noBlock(d, name, usage)
	}
}

// present is an option that is on when it is there.
func present(target *bool) func(*caddyfile.Dispenser) error {
	return func(d *caddyfile.Dispenser) error {
		name := d.Val()
		if d.NextArg() {
			return d.Errf("%s: unexpected argument '%s': write %s alone, or remove the line", name, d.Val(), name)
		}
		*target = true
		return noBlock(d, name, "alone")
	}
}

func noBlock(d *caddyfile.Dispenser, name, usage string) error {
	if d.NextBlock(d.Nesting()) {
		return d.Errf("%s takes no block: write %s %s", name, name, usage)
	}
	return nil
}

// located adds file and line to an error.
func located(d *caddyfile.Dispenser, err error) error {
	if err != nil {
		return d.WrapErr(err)
	}
	return nil
}

func text(target *string, valid rule[string]) setter {
	return func(option, arg string) error {
		*target = arg
		if arg == "" {
			return fmt.Errorf("%s is empty: give a value, or remove the line", option)
		}
		return apply(option, arg, valid)
	}
}

// secret is text that no error shows.
func secret(target *string, valid rule[string]) setter {
	return func(option, arg string) error {
		*target = arg
		if arg == "" {
			return fmt.Errorf("%s is empty: give a value, or remove the line", option)
		}
		return applySecret(option, arg, unlessPlaceholder(valid))
	}
}

// address is text that e2b validates, which says what the option is.
func address(target *string, config func(value string) e2b.Config) setter {
	valid := unlessPlaceholder(func(value string) error {
		_, err := e2b.New(config(value))
		return err
	})
	return func(option, arg string) error {
		if arg == "" {
			return fmt.Errorf("%s is empty: give a value, or remove the line", option)
		}
		// The Caddyfile's shorthand for the port of a request is a token of ours.
		arg = strings.ReplaceAll(arg, "{http.request.port}", "{port}")
		*target = arg
		return ofE2B(valid(arg))
	}
}

func number(target *int, valid rule[int]) setter {
	return func(option, arg string) error {
		n, err := strconv.Atoi(arg)
		if err != nil {
			return fmt.Errorf("%s %q: must be a whole number", option, arg)
		}
		*target = n
		return apply(option, n, valid)
	}
}

func duration(target *caddy.Duration, valid rule[caddy.Duration]) setter {
	return func(option, arg string) error {
		t, err := caddy.ParseDuration(arg)
		if err != nil {
			return fmt.Errorf("%s %q: must be a duration like 90s, 15m or 1h", option, arg)
		}
		*target = caddy.Duration(t)
		return apply(option, *target, valid)
	}
}

func size(target *int64, valid rule[int64]) setter {
	return func(option, arg string) error {
		n, err := humanize.ParseBytes(arg)
		if err != nil || n > math.MaxInt64 {
			return fmt.Errorf("%s %q: must be a size like 512KiB, 64MiB or 1GiB", option, arg)
		}
		*target = int64(n)
		if err := valid(*target); err != nil {
			return fmt.Errorf("%s %s: %w", option, arg, err) // as it was written, not in bytes
		}
		return nil
	}
}

func toggle(target *bool) setter {
	return func(option, arg string) error {
		*target = arg == "on"
		if arg != "on" && arg != "off" {
			return fmt.Errorf("%s %q: must be on or off", option, arg)
		}
		return nil
	}
}

func words(target *[]string, valid rule[string]) func(option string, args []string) error {
	return func(option string, args []string) error {
		*target = args
		return checkAll(option, args, valid)
	}
}

// optional is for options whose zero value is not their default.
func optional[T any](target **T, read func(*T) setter) setter {
	return func(option, arg string) error {
		value := new(T)
		*target = value
		return read(value)(option, arg)
	}
}
