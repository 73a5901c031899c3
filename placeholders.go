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
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// expand resolves the placeholders of a value that may be secret: no error
// shows more of it than placeholders. The names in tokens stay as they are.
func expand(option, value string, tokens ...string) (string, error) {
	repl := caddy.NewReplacer()
	for _, token := range tokens {
		repl.Set(token, "{"+token+"}")
	}
	expanded, err := repl.ReplaceOrErr(value, true, true)
	switch {
	case err == nil:
		return strings.TrimSpace(expanded), nil
	case globalPlaceholder.MatchString(err.Error()):
		return "", fmt.Errorf("%s: %w: set the variable or write the file that it stands for", option, err)
	default:
		return "", fmt.Errorf("%s: %w", option, errPlaceholder)
	}
}

var errPlaceholder = errors.New("contains a placeholder that means nothing here: " +
	"use {env.NAME} or {file./path}, and write \\{ for a brace that is part of the value")
