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

package local

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// plumbing is the descriptors of one start: the gateway's ends and the others'.
type plumbing struct {
	commands, events, info, block *os.File
	extra                         []*os.File // bubblewrap's, from fdArgs on
}

// plumb opens the descriptors of a start.
func (e *engine) plumb() (*plumbing, error) {
	p := &plumbing{}
	if err := p.open(e); err != nil {
		p.closeOurs()
		p.closeTheirs()
		return nil, err
	}
	return p, nil
}

func (p *plumbing) open(e *engine) (err error) {
	contents := [][]byte{e.args, e.seccomp, nil, nil, e.py.Code, nil, nil}
	for _, file := range sandboxFiles {
		contents = append(contents, []byte(file.text))
	}
	if seed := e.seed.Load(); seed != nil {
		contents[0] = append(slices.Clip(e.args), seedArgs(seed)...)
		contents = append(contents, seed.content)
	}
	for i, content := range contents {
		var file *os.File
		switch fdArgs + i {
		case fdInfo:
			p.info, file, err = os.Pipe()
		case fdBlock:
			file, p.block, err = os.Pipe()
		case fdCommands:
			file, p.commands, err = os.Pipe()
		case fdEvents:
			p.events, file, err = os.Pipe()
		default:
			file, err = memFile(content)
		}
		if err != nil {
			return err
		}
		p.extra = append(p.extra, file)
	}
	return nil
}

// Closing twice, or what was never opened, is an error that does no harm.

func (p *plumbing) closeTheirs() {
	for _, f := range p.extra {
		_ = f.Close()
	}
}

func (p *plumbing) closeOurs() {
	for _, f := range []*os.File{p.commands, p.events, p.info, p.block} {
		_ = f.Close()
	}
}

// memFile returns a file in memory that is read from its beginning.
func memFile(content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("sandbox", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("creating a file in memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), "sandbox")
	if _, err = file.WriteAt(content, 0); err != nil {
		file.Close()
		return nil, fmt.Errorf("writing a file in memory: %w", err)
	}
	return file, nil
}
