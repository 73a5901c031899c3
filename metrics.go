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
	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/handler"
)

// metrics are those of the process. They outlive configurations, each of which
// has a registry of its own.
var metrics = handler.NewMetrics()

// registerMetrics makes the metrics visible in a configuration's registry.
func registerMetrics(r prometheus.Registerer) error {
	return metrics.Register(r)
}
