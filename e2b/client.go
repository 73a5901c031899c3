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

// Package e2b is a client of the E2B protocol: the control plane, which makes
// and ends sandboxes, and the data plane, which runs code in them. It speaks to
// E2B's cloud, to self-hosted and compatible servers, and to any server in the
// same process through an [http.RoundTripper].
package e2b

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"go.uber.org/zap"
)

// What an empty field of Config stands for.
const (
	DefaultAPIURL   = "https://api.e2b.app"
	DefaultDomain   = "e2b.app"
	DefaultTemplate = "code-interpreter-v1"
	DefaultMaxRead  = 16 << 20
)

// userAgent names the client to both planes.
const userAgent = "caddy-code-interpreter"

// Config says which sandboxes a Client speaks to and how.
type Config struct {
	// APIKey is sent as X-API-Key to the control plane, never to the data
	// plane. It may be empty: some self-hosted servers have no keys.
	APIKey string `json:"-"`

	// APIURL is the base URL of the control plane. Default: DefaultAPIURL.
	APIURL string

	// Domain is the domain of the data plane for sandboxes whose creation
	// names none. It may carry a port. Default: DefaultDomain.
	Domain string

	// SandboxURL is where the data plane is when it is not at
	// https://49999-{id}.{domain}: one base URL for all sandboxes, or a
	// template with {port}, {id} and {domain}. Default: none.
	SandboxURL string

	// Template is the template of new sandboxes. Default: DefaultTemplate.
	Template string

	// Internet is whether code in new sandboxes may reach the internet.
	Internet bool

	// MaxRead is how many bytes of an execution's answer are read, after
	// decompression, before it is given up as TooLarge. One line may be as
	// long, so an execution can take a small multiple of it in memory.
	// Default: DefaultMaxRead.
	MaxRead int64

	// Transport carries the requests of both planes. Nil means the client's
	// own transport, which Close closes; another one is left alone. Its
	// RoundTrip must end when the request's context does, and should fail with
	// a *net.OpError whose Op is "dial" when nothing was sent.
	Transport http.RoundTripper `json:"-"`

	// Logger gets what a provider answered and why a connection failed, at
	// debug level and without secrets. Nil means none.
	Logger *zap.Logger `json:"-"`
}

// String returns the configuration without the key.
func (c Config) String() string {
	return fmt.Sprintf("e2b.Config{APIURL: %q, Domain: %q, SandboxURL: %q, Template: %q, Internet: %t, MaxRead: %d}",
		HideSecrets(c.APIURL), c.Domain, HideSecrets(c.SandboxURL), c.Template, c.Internet, c.MaxRead)
}

// GoString is String: %#v shows no key either.
func (c Config) GoString() string { return c.String() }

// Client speaks to the sandboxes of one configuration. It is safe for
// concurrent use. The context of each call bounds its time; the client adds
// none but Execution.Timeout.
type Client struct {
	config    Config
	api       *url.URL
	rt        http.RoundTripper
	own       *http.Transport // rt when it is the client's own, else nil
	logger    *zap.Logger
	create    route
	connect   route
	list      route
	timeout   atomic.Int32 // support of the timeout call
	sharedURL atomic.Int32 // support of the shared host of the hosted domains
}

// What has been learned of an optional part of the protocol.
const (
	supportUnknown = iota
	supported
	unsupported
)

// New returns a client for a configuration, or an error that names the value
// that cannot be used. It makes no connection.
func New(config Config) (*Client, error) {
	applyDefaults(&config)
	api, err := parseBase("api_url", config.APIURL)
	if err != nil {
		return nil, err
	}
	if err := checkDataPlane(config); err != nil {
		return nil, err
	}
	if !headerSafe(config.APIKey) {
		return nil, errors.New("e2b: api_key: contains a space, a line break or another character that no key has: check where it is read from")
	}
	if config.MaxRead < 0 {
		return nil, fmt.Errorf("e2b: max_read: %d is negative: give a number of bytes, or 0 for the default of %d", config.MaxRead, DefaultMaxRead)
	}
	c := &Client{config: config, api: api, rt: config.Transport, logger: config.Logger, list: route{first: v2}}
	if c.rt == nil {
		c.own = newTransport()
		c.rt = c.own
	}
	return c, nil
}

func applyDefaults(config *Config) {
	setDefault(&config.APIURL, DefaultAPIURL)
	setDefault(&config.Domain, DefaultDomain)
	setDefault(&config.Template, DefaultTemplate)
	setDefault(&config.MaxRead, DefaultMaxRead)
	if config.Logger == nil {
		config.Logger = zap.NewNop()
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Close closes the idle connections of the client's own transport. Calls in
// flight go on; a transport given in Config is left alone.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// String returns the client's configuration without the key.
func (c *Client) String() string { return c.config.String() }

// GoString is String: %#v shows no key either.
func (c *Client) GoString() string { return c.config.String() }

// parseBase parses a URL that requests are built upon.
func parseBase(option, value string) (*url.URL, error) {
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return nil, fmt.Errorf("e2b: %s: %q is not a URL with scheme and host: give one like https://host or http://host:port", option, HideSecrets(value))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return nil, fmt.Errorf("e2b: %s: %q has more than scheme, host and path: leave out user, query and fragment", option, HideSecrets(value))
	}
	return u, nil
}

// HideSecrets takes out of a URL, which may not parse, what can be a password
// or a key.
func HideSecrets(value string) string {
	at, cut := strings.LastIndexByte(value, '@'), strings.IndexAny(value, "?#")
	switch {
	case cut >= 0 && cut < at:
		return "..." // a user that ends in the query, or a query with an @
	case cut >= 0:
		value = value[:cut+1] + "..."
	}
	if at >= 0 {
		value = "..." + value[at:]
	}
	return value
}
