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

package e2b

import (
	"context"
	"io"
	"net/http"
)

// maxContextsBody bounds an answer about contexts.
const maxContextsBody = 1 << 20

// Context is a kernel in a sandbox, with variables of its own.
type Context struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	Cwd      string `json:"cwd"`
}

// Contexts returns the contexts of a sandbox, the default one included: the
// first with language python and working directory /home/user.
func (c *Client) Contexts(ctx context.Context, sb *Sandbox) ([]Context, error) {
	var all []Context
	if err := c.contextCall(ctx, sb, "list contexts", http.MethodGet, "/contexts", nil, &all); err != nil {
		return nil, err
	}
	valid := all[:0]
	for _, one := range all {
		if validContextID.MatchString(one.ID) {
			valid = append(valid, one)
		}
	}
	return valid, nil
}

// CreateContext makes a context. Empty fields are left to the server; an ID is
// ignored.
func (c *Client) CreateContext(ctx context.Context, sb *Sandbox, want Context) (Context, error) {
	const op = "create context"
	request := struct {
		Language string `json:"language,omitempty"`
		Cwd      string `json:"cwd,omitempty"`
	}{want.Language, want.Cwd}
	var made Context
	if err := c.contextCall(ctx, sb, op, http.MethodPost, "/contexts", request, &made); err != nil {
		return Context{}, err
	}
	if !validContextID.MatchString(made.ID) {
		return Context{}, &Error{Op: op, Kind: BadAnswer, Err: errBadID}
	}
	return made, nil
}

// RestartContext restarts the kernel of a context: its variables are lost.
func (c *Client) RestartContext(ctx context.Context, sb *Sandbox, id string) error {
	return c.contextIDCall(ctx, sb, "restart context", http.MethodPost, id, "/restart")
}

// RemoveContext ends a context. One that is no more is no error.
func (c *Client) RemoveContext(ctx context.Context, sb *Sandbox, id string) error {
	err := c.contextIDCall(ctx, sb, "remove context", http.MethodDelete, id, "")
	if KindOf(err) == ContextGone {
		return nil
	}
	return err
}

func (c *Client) contextIDCall(ctx context.Context, sb *Sandbox, op, method, id, suffix string) error {
	if !validContextID.MatchString(id) {
		return &Error{Op: op, Kind: BadAnswer, Err: errArgument}
	}
	return c.contextCall(ctx, sb, op, method, "/contexts/"+id+suffix, nil, nil)
}

// contextCall makes a call and decodes its answer into out, when there is one.
func (c *Client) contextCall(ctx context.Context, sb *Sandbox, op, method, path string, in, out any) error {
	resp, failed := c.data(ctx, sb, dataCall{op: op, method: method, path: path, body: in, limit: maxContextsBody})
	if failed != nil {
		return failed
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return c.transportError(ctx, op, Unavailable, err)
	}
	if out == nil {
		return nil
	}
	if err := decodeLenient(body, out); err != nil {
		return &Error{Op: op, Kind: BadAnswer, Status: resp.StatusCode, Err: errNotJSON}
	}
	return nil
}
