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
	"slices"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// relay is the logger of what outlives a configuration: it hands each entry to
// the logger of the configuration that was loaded last.
type relay struct {
	name    string
	current atomic.Pointer[zap.Logger]
}

func newRelay(logger *zap.Logger) *relay {
	r := &relay{name: logger.Name()}
	r.set(logger)
	return r
}

func (r *relay) set(logger *zap.Logger) { r.current.Store(logger) }

func (r *relay) logger() *zap.Logger {
	return zap.New(relayCore{relay: r}).Named(r.name)
}

type relayCore struct {
	relay  *relay
	fields []zapcore.Field
}

func (c relayCore) core() zapcore.Core {
	return c.relay.current.Load().Core().With(c.fields)
}

// Enabled reports whether the current logger takes entries of a level.
func (c relayCore) Enabled(level zapcore.Level) bool {
	return c.relay.current.Load().Core().Enabled(level)
}

// With returns a core that adds fields to each entry.
func (c relayCore) With(fields []zapcore.Field) zapcore.Core {
	c.fields = append(slices.Clip(c.fields), fields...)
	return c
}

// Check adds the current logger's core to those that write the entry.
func (c relayCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return c.core().Check(entry, checked)
}

// Write writes the entry with the current logger.
func (c relayCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	return c.core().Write(entry, fields)
}

// Sync flushes the current logger.
func (c relayCore) Sync() error { return c.relay.current.Load().Sync() }

// Interface guard
var _ zapcore.Core = relayCore{}
