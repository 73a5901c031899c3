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

//go:build !linux

package local

import (
	"context"
	"errors"
	"os"
	"sync/atomic"

	"go.uber.org/zap"
)

// engine does not exist here: bubblewrap is Linux's.
type engine struct{ seed atomic.Pointer[seedFile] }

func (*engine) String() string { return "none" }

func newEngine(context.Context, string, limits) (*engine, error) {
	return nil, errors.New("sandboxes on this machine need Linux: use sandbox e2b")
}

func (*engine) start() (*process, error) { return nil, errEngineClosed }
func (*engine) close()                   {}
func (*engine) sweep(*zap.Logger)        {}

// process is never made here.
type process struct {
	commands, events *os.File
	done             chan struct{}
}

func (*process) kill()          {}
func (*process) signalEnd()     {}
func (*process) release()       {}
func (*process) why() string    { return "" }
func (*process) usage() usage   { return usage{} }
func (*process) killInside(int) {}
