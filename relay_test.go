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
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestRelayFollowsTheConfiguration logs with one logger while the
// configuration's changes.
func TestRelayFollowsTheConfiguration(t *testing.T) {
	firstCore, first := observer.New(zapcore.DebugLevel)
	secondCore, second := observer.New(zapcore.InfoLevel)
	r := newRelay(zap.New(firstCore).Named(moduleID))
	logger := r.logger().With(zap.String("sandbox_id", "s1"))
	logger.Debug("one")
	r.set(zap.New(secondCore).Named(moduleID))
	logger.Debug("below the level of the second")
	logger.Warn("two")

	for _, tc := range []struct {
		logs *observer.ObservedLogs
		want string
	}{{first, "one"}, {second, "two"}} {
		entries := tc.logs.All()
		if len(entries) != 1 || entries[0].Message != tc.want {
			t.Errorf("logged %v, want %q alone", entries, tc.want)
			continue
		}
		if entries[0].LoggerName != moduleID || entries[0].ContextMap()["sandbox_id"] != "s1" {
			t.Errorf("logger %q with %v", entries[0].LoggerName, entries[0].ContextMap())
		}
	}
	if logger.Core().Enabled(zapcore.DebugLevel) {
		t.Error("debug is enabled though the second logger does not take it")
	}
}
