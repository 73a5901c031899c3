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

package wire

import (
	"slices"
	"strings"
)

// Owner says who has to answer a tool call.
type Owner int

// The owners of a call.
const (
	// Nobody is the owner of a call of a tool that nobody declared.
	Nobody Owner = iota
	// Gateway is the owner of a call of our tool.
	Gateway
	// Client is the owner of a call of a tool that the client declared.
	Client
)

// Tools knows whose tool a name is.
type Tools struct {
	// Name is our tool's.
	Name string
	// Clients are the names that the client declared.
	Clients Names
	// Opaque says that the client declared tools without a name, of which any
	// name may be one.
	Opaque bool
}

// aliases are the names of the Python tools that models were trained with.
// They call these whatever the tool is named:
// https://github.com/odysseus-dev/odysseus/issues/5877
var aliases = []string{"python", "code_interpreter"}

// Owner returns whose tool a name is and the name that its owner knows it by.
func (t *Tools) Owner(name string) (Owner, string) {
	bare := bareName(name)
	for _, n := range []string{name, bare} {
		switch {
		case n == "":
		case n == t.Name:
			return Gateway, n
		case t.Clients.has(n):
			return Client, n
		}
	}
	switch {
	case slices.Contains(aliases, bare):
		return Gateway, bare
	case t.Opaque && name != "":
		return Client, name
	}
	return Nobody, name
}

// namespaces are put before a name by models that know tools as members of
// something: https://github.com/vllm-project/vllm/pull/35906
var namespaces = []string{"functions", "function", "tools", "default_api"}

// bareName takes a namespace off a name, and the number of the call, which are
// parts of an id that some models write instead of the name:
// https://github.com/vybestack/llxprt-code/issues/713
func bareName(name string) string {
	for _, space := range namespaces {
		rest, ok := strings.CutPrefix(name, space)
		if ok && len(rest) > 1 && strings.IndexByte(".:/", rest[0]) >= 0 {
			name = rest[1:]
			break
		}
	}
	if i := strings.LastIndexByte(name, ':'); i > 0 && i+1 < len(name) && strings.Trim(name[i+1:], "0123456789") == "" {
		name = name[:i]
	}
	return name
}
