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
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// interpreterPort is where the code interpreter listens in a sandbox.
const interpreterPort = "49999"

// HostedDomains are E2B's own, which offer one host for all sandboxes: one
// connection instead of a TLS handshake for each sandbox.
var HostedDomains = []string{"e2b.app", "e2b.dev"}

var (
	placeholder = regexp.MustCompile(`\{[^{}]*\}|[{}]`)
	hostLabel   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)
	numericHost = regexp.MustCompile(`^(0[xX][0-9A-Fa-f]*|[0-9]+)$`)
)

// checkDataPlane validates what base URLs of sandboxes are made from.
func checkDataPlane(config Config) error {
	for _, p := range placeholder.FindAllString(config.SandboxURL, -1) {
		if p != "{port}" && p != "{id}" && p != "{domain}" {
			return fmt.Errorf("e2b: sandbox_url: %q is not a placeholder here: use {port}, {id} and {domain}", p)
		}
	}
	if _, err := parseBase("domain", perSandboxURL("id", config.Domain)); err != nil || strings.ContainsAny(config.Domain, "/@") {
		return fmt.Errorf("e2b: domain: %q is not a host or host:port: give one like %s", HideSecrets(config.Domain), DefaultDomain)
	}
	if config.SandboxURL == "" {
		return nil
	}
	_, err := parseBase("sandbox_url", expandURL(config.SandboxURL, "id", config.Domain))
	return err
}

// endpoint is one way to reach a sandbox's code interpreter.
type endpoint struct {
	base   string
	shared bool // the shared host of a hosted domain, not known to be served yet
}

// endpoints returns the ways to reach a sandbox, the best first. There is a
// second one only while it is not known whether the shared host is served.
func (c *Client) endpoints(id, domain string) []endpoint {
	if domain == "" {
		domain = c.config.Domain
	}
	if c.config.SandboxURL != "" {
		return []endpoint{{base: strings.TrimRight(expandURL(c.config.SandboxURL, id, domain), "/")}}
	}
	direct := endpoint{base: perSandboxURL(id, domain)}
	if !slices.Contains(HostedDomains, strings.ToLower(domain)) {
		return []endpoint{direct}
	}
	shared := endpoint{base: "https://sandbox." + domain, shared: true}
	switch c.sharedURL.Load() {
	case supported:
		return []endpoint{{base: shared.base}}
	case unsupported:
		return []endpoint{direct}
	default:
		return []endpoint{shared, direct}
	}
}

func perSandboxURL(id, domain string) string {
	return "https://" + interpreterPort + "-" + id + "." + domain
}

func expandURL(template, id, domain string) string {
	for _, p := range [...]struct{ name, value string }{{"{port}", interpreterPort}, {"{id}", id}, {"{domain}", domain}} {
		template = strings.ReplaceAll(template, p.name, p.value)
	}
	return template
}

// validDomain is whether a domain that a server returned is host[:port], where
// the host is a name: nothing that could lead a request to another place.
func validDomain(domain string) bool {
	host, port, found := strings.Cut(domain, ":")
	if found {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '+' {
			return false
		}
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if !hostLabel.MatchString(label) {
			return false
		}
	}
	return len(host) <= 253 && !numericHost.MatchString(labels[len(labels)-1])
}
