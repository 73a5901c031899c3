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

package handler

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler/internal/wire"
	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// wants says whether a request asks for the tool, or is to be offered it.
func (h *Handler) wants(req *wire.Request) bool {
	return req.HasTool || h.Offer == OfferAlways && h.offerable(req)
}

// admit decides what becomes of a request that wants the tool, before anything
// is sent anywhere: it is refused, or carried out (run), or passed on without
// the tool. A request that does not ask for the tool is never refused.
func (x *exchange) admit() (refused *refusal, run bool) {
	asked := x.req.HasTool
	if refused = x.fault(); refused == nil {
		refused = x.place()
	}
	switch {
	case refused == nil:
	case asked:
		return refused, false
	default:
		return nil, false
	}
	x.edited = x.req.Rewrite(wire.RewriteOptions{Name: x.h.ToolName, Offer: !asked})
	return nil, x.edited.Name != ""
}

// offerable says whether a request that did not ask for the tool can be given
// it without changing what its answer is to be.
func (h *Handler) offerable(req *wire.Request) bool {
	return req.HasMessages() && req.Duplicate == "" && !req.FormattedResponse() && !req.ManyChoices() &&
		!req.LegacyFunctions() && req.Choice(h.ToolName) != wire.ChoiceNone
}

// fault returns what is wrong with a request that has the tool.
func (x *exchange) fault() *refusal {
	switch {
	case x.req.Duplicate != "":
		return refuse(http.StatusBadRequest, x.req.Duplicate,
			"The field %q stands in the request more than once, so that two readers may take different values. Send it once.", x.req.Duplicate)
	case x.req.ManyChoices():
		return refuse(http.StatusBadRequest, "n", "With the tool code_interpreter, n must be 1: a program runs once, for one answer.")
	case !x.req.HasMessages():
		return refuse(http.StatusBadRequest, "messages", "With the tool code_interpreter, messages must be an array of messages.")
	}
	return nil
}

// place finds the caller and its session, and opens the handle on a sandbox.
func (x *exchange) place() *refusal {
	caller, known := x.h.caller(x.r)
	if !known {
		return refuse(http.StatusUnauthorized, "", "The gateway could not tell who sends this request, so the tool code_interpreter is not available. Authenticate first.")
	}
	id, refused := x.sessionID()
	if refused != nil {
		return refused
	}
	if x.stranger = x.h.strangers(x.r, caller); x.stranger {
		id = ""
	}
	var busy *session.BusyError
	if err := x.h.Pool.Admit(caller, id); errors.As(err, &busy) {
		refused = refuse(http.StatusTooManyRequests, "metadata.session_id",
			"All sessions that this caller may have are in use. Wait for one of them to finish, or use its session_id.")
		refused.retryAfter = busy.RetryAfter
		return refused
	}
	x.caller, x.session = caller, id
	x.handle = x.h.Pool.Open(caller, id)
	return nil
}

// sessionID returns the session that the request names, "" for none.
func (x *exchange) sessionID() (string, *refusal) {
	id, state := x.req.SessionID()
	switch {
	case state == wire.SessionInvalid:
		return "", refuse(http.StatusBadRequest, "metadata.session_id",
			"metadata.session_id must be a string of 1 to %d bytes. Leave it out for a sandbox that lasts for this request only.", wire.MaxSessionID)
	case state == wire.SessionValid:
		return id, nil
	case x.h.SessionID == "":
		return "", nil
	}
	if repl, ok := x.r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		id = repl.ReplaceAll(x.h.SessionID, "")
	}
	if len(id) > wire.MaxSessionID {
		return "", refuse(http.StatusBadRequest, "", "The session id that the gateway reads from this request is longer than %d bytes. Send a shorter one.", wire.MaxSessionID)
	}
	return id, nil
}
