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

package wire

import (
	"bytes"
	"slices"
	"sync"
)

// Stream makes one stream for the client out of the answers of several turns:
// one id, one role, one finish_reason, one usage, and of the calls only those
// that are the client's. It collects what is to be written until Take.
type Stream struct {
	// Tools says whose calls the client may see.
	Tools *Tools
	// IncludeUsage says that the client asked for usage.
	IncludeUsage bool

	out      []byte
	lent     *[]byte // what out was made of
	id       []byte  // in JSON; the first one of the stream
	created  []byte
	model    []byte
	hasRole  bool
	turns    int             // those that are over
	shown    int             // calls of the client that have been begun in this turn
	progress map[*Call]*seen // of the client's calls
	held     []byte          // the chunk with the finish_reason; empty for none
	early    [][]byte        // chunks without a choice from before there was an id
	waiting  int             // their size
	chunk    *Chunk          // for held and early chunks; nil before the first
}

// seen is how much of a call the client has seen.
type seen struct {
	index, args, extra, inner int
}

// Take returns what is to be written and begins anew. It is valid until the
// next call of a method.
func (s *Stream) Take() []byte {
	out := s.out
	s.out = s.out[:0]
	return out
}

// maxOut is the size in bytes of the largest output buffer that is used again.
// The pieces of a stream are as large as those that its upstream is read in.
const maxOut = 128 << 10

var outs = sync.Pool{New: func() any { return new([]byte) }}

// Start has the stream use the buffer of one that is over. Without it, it makes
// one of its own.
func (s *Stream) Start() {
	s.lent, _ = outs.Get().(*[]byte)
	s.out = (*s.lent)[:0]
}

// Release ends the stream. What Take returned is not valid any more.
func (s *Stream) Release() {
	if s.lent != nil && cap(s.out) <= maxOut {
		*s.lent = s.out[:0]
		outs.Put(s.lent)
	}
	if s.chunk != nil {
		s.chunk.Release()
	}
	s.out, s.lent, s.chunk = nil, nil, nil
}

// parse reads a chunk that was kept.
func (s *Stream) parse(data []byte) bool {
	if s.chunk == nil {
		s.chunk = NewChunk()
	}
	return s.chunk.Parse(data)
}

// Chunk adds a chunk that a has observed.
func (s *Stream) Chunk(c *Chunk, a *Answer) {
	switch {
	case c.failure.present():
		return // told at the end
	case !c.hasChoice:
		s.bare(c)
		return
	}
	s.identify(c)
	var calls []byte
	if len(a.Touched()) > 0 {
		calls = s.callDeltas(a, false)
	}
	if c.finish.present() {
		s.release()
		s.hold(c)
		if len(calls) > 0 {
			s.delta("tool_calls", calls)
		}
		return
	}
	if (c.substance() || len(calls) > 0) && len(s.held) > 0 {
		s.release()
	}
	s.forward(c, change{calls: calls})
}

// How many chunks wait for an id, and how large they are together.
const (
	maxEarly     = 16
	maxEarlySize = 1 << 20
)

// bare adds a chunk without a choice. Usage is told once at the end; what else
// there is, such as the filter results of Azure, may come before the stream
// has an id: https://github.com/AbanteAI/archive-old-cli-mentat/issues/429
// When there is too much of that, the stream does not wait for one.
func (s *Stream) bare(c *Chunk) {
	switch {
	case c.usage.present() || !c.choices.present() || s.turns > 0 || !c.tells():
	case s.id == nil && len(s.early) < maxEarly && s.waiting+len(c.data) <= maxEarlySize:
		s.waiting += len(c.data)
		s.early = append(s.early, bytes.Clone(c.data))
	default:
		s.identify(c)
		s.write(c, change{})
	}
}

// identify settles the id of the stream, as a rule by the first chunk with a
// choice.
func (s *Stream) identify(c *Chunk) {
	if s.id != nil {
		return
	}
	s.id, s.created = idOf(c.id.of(c.data)), createdOf(c.created.of(c.data))
	s.model = bytes.Clone(c.model.of(c.data))
	for _, data := range s.early {
		if s.parse(data) {
			s.write(s.chunk, change{})
		}
	}
	s.early = nil
}

// callDeltas returns what has come of the calls of the client, under indexes
// that count only those; nil for nothing.
func (s *Stream) callDeltas(a *Answer, ended bool) []byte {
	var dst []byte
	calls := a.Calls()
	for i, call := range calls {
		owner, name := s.Tools.Owner(call.Name)
		at := s.progress[call]
		switch {
		case at != nil:
			dst = s.goOn(dst, call, at)
		case owner == Client && identified(calls[:i], call.ID) && (ended || call.begun() || i+1 < len(calls)):
			dst = call.appendOpening(element(dst), s.shown, name)
			s.open(call)
		case owner != Client && call.Name != "" && call.begun():
		case !ended:
			// More of it has to come before it can be shown, and no later one
			// may be shown before it.
			return closeArray(dst)
		}
	}
	return closeArray(dst)
}

// identified says whether a call can be told from those before it. Others get
// an id of ours when the turn is over.
func identified(before []*Call, id string) bool {
	return id != "" && !slices.ContainsFunc(before, func(c *Call) bool { return c.ID == id })
}

// open notes that the client has seen all there is of a call.
func (s *Stream) open(call *Call) {
	if s.progress == nil {
		s.progress = map[*Call]*seen{}
	}
	s.progress[call] = &seen{s.shown, len(call.args), len(call.extra), len(call.inner)}
	s.shown++
}

// goOn adds what is new of a call that the client has seen in part.
func (s *Stream) goOn(dst []byte, call *Call, at *seen) []byte {
	now := seen{at.index, len(call.args), len(call.extra), len(call.inner)}
	if now == *at {
		return dst
	}
	dst = call.appendDelta(element(dst), at)
	*at = now
	return dst
}

// element begins the next element of an array.
func element(dst []byte) []byte {
	if len(dst) == 0 {
		return append(dst, '[')
	}
	return append(dst, ',')
}

func closeArray(dst []byte) []byte {
	if len(dst) == 0 {
		return nil
	}
	return append(dst, ']')
}

// forward writes a chunk, unless taking out what is not the client's leaves
// nothing of it.
func (s *Stream) forward(c *Chunk, e change) {
	switch role, _ := stringBody(c.role.of(c.data)); {
	case !c.role.present():
	case s.hasRole || string(role) != "assistant":
		e.dropRole = true
	default:
		s.hasRole = true
	}
	tells := c.substance() || len(e.calls) > 0 || e.finish != "" || c.role.present() && !e.dropRole
	if tells || !e.dropRole && !c.usage.present() && !c.toolCalls.present() && !c.functionCall.present() {
		s.write(c, e)
	}
}

// delta writes a chunk of our own with one member of a delta, which may be in
// several pieces.
func (s *Stream) delta(name string, value ...[]byte) {
	at := s.beginOwn()
	s.out = appendMember(s.out, name, nil)
	for _, piece := range value {
		s.out = append(s.out, piece...)
	}
	s.endOwn(at, "null")
}

// beginOwn begins a chunk of our own, up to the members of its delta, and returns
// where it starts, for endOwn.
func (s *Stream) beginOwn() int {
	at := s.event()
	s.out = append(s.appendHead(s.out), `,"choices":[{"index":0,"delta":{`...)
	return at
}

// endOwn ends a chunk that beginOwn began. finish is JSON.
func (s *Stream) endOwn(at int, finish string) {
	s.out = append(append(append(s.out, `},"finish_reason":`...), finish...), "}]}"...)
	s.end(at)
}

// appendHead adds the members that are the same in each chunk of our own.
func (s *Stream) appendHead(dst []byte) []byte {
	if s.id == nil {
		s.id, s.created = idOf(nil), createdOf(nil)
	}
	dst = appendMember(append(dst, '{'), "id", s.id)
	dst = appendMember(dst, "object", []byte(`"chat.completion.chunk"`))
	dst = appendMember(dst, "created", s.created)
	if len(s.model) > 0 {
		dst = appendMember(dst, "model", s.model)
	}
	return dst
}

// hold keeps a chunk with a finish_reason back until it is known whether it is
// the last one.
func (s *Stream) hold(c *Chunk) {
	if as := (change{finish: string(c.finish.of(c.data))}); s.unchanged(c, as) {
		s.held = append(s.held[:0], c.data...)
	} else {
		s.held = s.appendChunk(slices.Grow(s.held[:0], 2*len(c.data)), c, as)
	}
}

// release writes the held chunk without its finish_reason: something came
// after it.
func (s *Stream) release() {
	if s.takeHeld() && (s.chunk.substance() || s.chunk.role.present() && !s.hasRole) {
		s.forward(s.chunk, change{finish: "null"})
	}
}

// takeHeld parses the held chunk, and holds it no longer. It is false when there
// was none.
func (s *Stream) takeHeld() bool {
	held := s.held
	s.held = held[:0]
	return len(held) > 0 && s.parse(held)
}

// Hide ends a turn after which another one comes.
func (s *Stream) Hide(a *Answer) {
	s.release()
	s.flushCalls(a)
	s.turns++
	s.shown, s.progress = 0, nil
}

// flushCalls writes what the client has not seen of its calls: some get their
// id only now.
func (s *Stream) flushCalls(a *Answer) {
	if calls := s.callDeltas(a, true); calls != nil {
		s.delta("tool_calls", calls)
	}
}

// Executed writes what became of code, one of executed_tools.
func (s *Stream) Executed(tool []byte) {
	s.delta("executed_tools", []byte("["), tool, []byte("]"))
}

// Finish ends the stream after the turn of a. usage is nil when there is none.
func (s *Stream) Finish(a *Answer, reason string, usage []byte) {
	s.flushCalls(a)
	finish := string(appendQuoted(nil, reason))
	if s.takeHeld() {
		s.forward(s.chunk, change{finish: finish})
	} else {
		s.endOwn(s.beginOwn(), finish)
	}
	if s.IncludeUsage && usage != nil {
		at := s.event()
		s.out = s.appendHead(s.out)
		s.out = append(append(append(s.out, `,"choices":[],"usage":`...), usage...), '}')
		s.end(at)
	}
	s.done()
}

// Fail ends the stream with an error, an object with a member `error`.
func (s *Stream) Fail(failure []byte) {
	s.release()
	at := s.event()
	s.out = append(s.out, failure...)
	s.end(at)
	s.done()
}

// done writes the end of the stream.
func (s *Stream) done() { s.out = append(s.out, "data: [DONE]\n\n"...) }

// event begins an event and returns where its data starts, for end.
func (s *Stream) event() int {
	s.out = append(s.out, "data: "...)
	return len(s.out)
}

// end ends the event of which the data starts at an offset of the output. JSON
// that was spread over several data lines is put on one.
func (s *Stream) end(at int) {
	for _, lineEnd := range []byte("\n\r") {
		for data := s.out[at:]; ; {
			i := bytes.IndexByte(data, lineEnd)
			if i < 0 {
				break
			}
			data[i] = ' '
			data = data[i+1:]
		}
	}
	s.out = append(s.out, "\n\n"...)
}
