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
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// configured is what a command knows of a handler's backend.
type configured struct {
	spec   backendSpec
	limits session.Limits
}

// loadHandlers returns the code_interpreter handlers of the configuration that
// the flags name, of a Caddyfile in the working directory, or one with defaults.
func loadHandlers(cmd *cobra.Command) ([]configured, error) {
	name := flagValue(cmd, "config")
	config, _, _, err := caddycmd.LoadConfig(name, flagValue(cmd, "adapter"))
	if err != nil {
		return nil, err
	}
	handlers := []*CodeInterpreter{new(CodeInterpreter)}
	if len(config) > 0 {
		if handlers, err = findHandlers(config); err != nil {
			return nil, err
		}
	}
	var list []configured
	for _, c := range handlers {
		h, err := c.configured()
		if err != nil {
			return nil, err
		}
		list = append(list, h)
	}
	return list, nil
}

// findHandlers returns the code_interpreter handlers of a configuration in JSON.
func findHandlers(config []byte) ([]*CodeInterpreter, error) {
	var tree any
	if err := json.Unmarshal(config, &tree); err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	var handlers []*CodeInterpreter
	if err := walk(tree, func(module map[string]any) error {
		c, err := asHandler(module)
		if c != nil {
			handlers = append(handlers, c)
		}
		return err
	}); err != nil {
		return nil, err
	}
	if len(handlers) == 0 {
		return nil, errors.New("the configuration has no code_interpreter handler")
	}
	return handlers, nil
}

// asHandler returns the handler that a JSON object configures, nil for others.
func asHandler(module map[string]any) (*CodeInterpreter, error) {
	if module["handler"] != "code_interpreter" {
		return nil, nil //nolint:nilnil // no handler, no error
	}
	options := maps.Clone(module)
	delete(options, "handler")
	text, err := json.Marshal(options)
	if err != nil {
		return nil, err
	}
	c := new(CodeInterpreter)
	if err := caddy.StrictUnmarshalJSON(text, c); err != nil {
		return nil, fmt.Errorf("code_interpreter: %w", err)
	}
	return c, nil
}

// walk visits every object of a JSON document, in a stable order.
func walk(tree any, visit func(map[string]any) error) error {
	switch node := tree.(type) {
	case map[string]any:
		if err := visit(node); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(node)) {
			if err := walk(node[key], visit); err != nil {
				return err
			}
		}
	case []any:
		for _, child := range node {
			if err := walk(child, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// configured checks the configuration as Provision does, with no sandbox kept
// warm: a command wants one.
func (c *CodeInterpreter) configured() (configured, error) {
	if err := c.check(); err != nil {
		return configured{}, err
	}
	spec, err := c.backend()
	if err != nil {
		return configured{}, err
	}
	limits, err := c.limits(spec)
	if err != nil {
		return configured{}, err
	}
	if spec.local != nil {
		spec.local.warm = 0
	}
	return configured{spec: spec, limits: limits}, nil
}
