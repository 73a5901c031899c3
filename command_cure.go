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
	"net/http"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/e2b"
)

// describe names the backend without its secrets.
func (s backendSpec) describe() string {
	if s.local != nil {
		return engineLocal + " on this machine"
	}
	text := engineE2B + " at " + e2b.HideSecrets(s.e2b.apiURL) + ", template " + s.e2b.template
	if s.e2b.sandboxURL != "" {
		text += ", sandboxes at " + e2b.HideSecrets(s.e2b.sandboxURL)
	}
	return text
}

// cure is what helps against an error of a backend, empty for those that say so
// themselves.
func cure(err error) string {
	failure, ok := errors.AsType[*e2b.Error](err)
	switch {
	case errors.Is(err, errNotPython), errors.Is(err, errNoState):
		return "use a template with E2B's code interpreter; option template of sandbox e2b"
	case errors.Is(err, errRaised):
		return "Python in the sandbox is broken; try another template, or another python for local sandboxes"
	case !ok:
		return ""
	case failure.Op == "create":
		return cureForCreate(failure)
	case failure.Op == "pause":
		return "the server cannot pause sandboxes: remove the option on_idle pause"
	case failure.Op == "delete":
		return "the sandbox is left to its timeout; the key may lack the right to delete"
	}
	switch failure.Kind {
	case e2b.NotReady:
		return "nothing answers at port 49999 of the sandbox: use a template with E2B's code interpreter; for a server of your own " +
			"check that sandbox_url (or domain) leads to its sandboxes from here"
	case e2b.Gone:
		return "the address of the sandboxes does not know one that was just made: sandbox_url or domain belongs to another server than api_url"
	case e2b.Unauthorized:
		return "the sandbox refuses the token that came with it: is there a proxy in between that drops headers?"
	case e2b.TimedOut, e2b.Interrupted:
		return "the sandbox did not finish a program of one line: is it short of memory, or is there a proxy in between that buffers or cuts?"
	default:
		return "what answers there does not speak the protocol of E2B's code interpreter"
	}
}

func cureForCreate(failure *e2b.Error) string {
	switch failure.Kind {
	case e2b.Unauthorized:
		return "the API key is refused: compare api_key (or E2B_API_KEY) with https://e2b.dev/dashboard; a server of your own has keys of its own"
	case e2b.Refused:
		if failure.Status == http.StatusNotFound || failure.Status == http.StatusBadRequest {
			return "the server does not take the template: check the option template, and that the key's team has it; does api_url lead to the control plane?"
		}
		return "the server refuses to make a sandbox: check the plan and its limits"
	case e2b.RateLimited:
		return "the plan's number of sandboxes or rate of creation is exhausted: end some, lower sessions max, or wait"
	case e2b.Unavailable:
		if failure.Status == 0 {
			return "api_url cannot be reached from here: check its name, DNS, firewall, certificate and HTTPS_PROXY"
		}
		return "the server has a problem of its own: https://status.e2b.dev, or the log of your own server"
	default:
		return "what answers at api_url does not speak E2B's protocol: check the option api_url"
	}
}
