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

import "slices"

// ToolType is the type of the tool in the client's list of tools.
const ToolType = "code_interpreter"

// key is a member of the request that matters here.
type key uint8

const (
	keyOther key = iota
	keyTools
	keyMessages
	keyMetadata
	keyStream
	keyStreamOptions
	keyN
	keyToolChoice
	keyParallelToolCalls
	keyResponseFormat
	keyFunctions
	keyFunctionCall
	numKeys
)

// keyOf returns which member a key names, given as it stands between quotes.
func keyOf(raw []byte) key {
	switch string(raw) {
	case "tools":
		return keyTools
	case "messages":
		return keyMessages
	case "metadata":
		return keyMetadata
	case "stream":
		return keyStream
	case "stream_options":
		return keyStreamOptions
	case "n":
		return keyN
	case "tool_choice":
		return keyToolChoice
	case "parallel_tool_calls":
		return keyParallelToolCalls
	case "response_format":
		return keyResponseFormat
	case "functions":
		return keyFunctions
	case "function_call":
		return keyFunctionCall
	}
	if !slices.Contains(raw, '\\') {
		return keyOther
	}
	var buf [longestRaw]byte
	decoded, ok := unescape(buf[:0], raw)
	if !ok || slices.Contains(decoded, '\\') {
		return keyOther // none of the keys has one
	}
	return keyOf(decoded)
}

// value is where a member's value stands. The zero value is an absent member.
type value struct {
	span
	first byte // its first byte, which tells its kind
}

// Request is what the scan of a chat request found. It refers to the body by
// offsets and reads details from it only when asked.
type Request struct {
	// HasTool says that the client asks for the code interpreter: an element
	// of tools (of any of them, should there be several) is of ToolType.
	HasTool bool

	// Stream says that the answer is to be streamed.
	Stream bool

	// Duplicate names a member that stands in the request twice and that two
	// parsers may therefore read differently, "" if there is none: one of the
	// members read here ("tools", "messages", "metadata", "stream", "n", ...),
	// "metadata.session_id" or "tools.type".
	Duplicate string

	body    *Body
	end     int // offset of the closing brace
	left    int // members that stay
	values  [numKeys]value
	session value
	cuts    []span // what hides the session id
	fewCuts [2]span
}

// Scan reads a chat request in one pass. It is false when the body is not one
// JSON object (a byte order mark, trailing text and a cut end included), which
// is then to be passed on as it is. Keys and values are compared as decoded
// and with their case; what stands deeper is not mistaken for what is meant.
// The body is to be complete.
func Scan(body *Body) (*Request, bool) {
	s := newScanner(body, 0)
	if s.token() != '{' {
		return nil, false
	}
	r := &Request{body: body}
	r.cuts = r.fewCuts[:0]
	var top cutter
	for begun := false; ; {
		m, more, ok := s.field(&begun)
		if !ok {
			return nil, false
		}
		if !more {
			break
		}
		emptied, ok := r.member(&s, m)
		if !ok {
			return nil, false
		}
		if emptied {
			top.drop(m.start, s.offset())
		} else {
			r.cut(top.keep(m.start, s.offset()))
		}
	}
	r.cut(top.close())
	r.end, r.left = s.offset()-1, top.items-top.dropped
	return r, s.token() == 0
}

// member reads a member of the request. emptied says that it holds nothing but
// the session id.
func (r *Request) member(s *scanner, m field) (emptied, ok bool) {
	k := keyOf(m.key)
	if k == keyOther {
		return false, s.value(m.first)
	}
	if r.values[k].first != 0 {
		name, _ := unescape(nil, m.key)
		r.duplicate(string(name))
	}
	switch {
	case k == keyTools && m.first == '[':
		ok = r.readTools(s)
	case k == keyMetadata && m.first == '{':
		emptied, ok = r.readMetadata(s)
	default:
		ok = s.value(m.first)
	}
	r.values[k] = value{span{m.value, s.offset()}, m.first}
	if k == keyStream {
		r.Stream = m.first == 't'
	}
	return emptied, ok
}

// duplicate notes the first duplicate.
func (r *Request) duplicate(name string) {
	if r.Duplicate == "" {
		r.Duplicate = name
	}
}

// cut notes a range that does not go upstream.
func (r *Request) cut(c span) {
	if c.end > 0 {
		r.cuts = append(r.cuts, c)
	}
}

// readTools reads the tools after their bracket.
func (r *Request) readTools(s *scanner) bool {
	for begun := false; ; {
		c, more, ok := s.element(&begun)
		if !more || !ok {
			return ok
		}
		ours, twice, ok := s.tool(c)
		if !ok {
			return false
		}
		r.HasTool = r.HasTool || ours
		if twice {
			r.duplicate("tools.type")
		}
	}
}

// tool consumes the rest of an element of tools whose first byte is c. It says
// whether it is ours and whether it has more than one type; of several, one
// that is ours is enough.
func (s *scanner) tool(c byte) (ours, twice, ok bool) {
	if c != '{' {
		return false, false, s.value(c)
	}
	types := 0
	for begun := false; ; {
		m, more, ok := s.field(&begun)
		if !more || !ok {
			return ours, types > 1, ok
		}
		isType := equal(m.key, "type")
		if !s.value(m.first) {
			return false, false, false
		}
		if isType {
			types++
			ours = ours || m.first == '"' && equal(s.last(m.value+1, longestRaw), ToolType)
		}
	}
}

// readMetadata reads the metadata after its brace, and says whether nothing of
// it is left without the session id.
func (r *Request) readMetadata(s *scanner) (emptied, ok bool) {
	var list cutter
	seen := false
	cuts := len(r.cuts)
	for begun := false; ; {
		m, more, ok := s.field(&begun)
		if !ok {
			return false, false
		}
		if !more {
			break
		}
		isID := equal(m.key, "session_id")
		if !s.value(m.first) {
			return false, false
		}
		if !isID {
			r.cut(list.keep(m.start, s.offset()))
			continue
		}
		if seen {
			r.duplicate("metadata.session_id")
		}
		seen = true
		r.session = value{span{m.value, s.offset()}, m.first}
		list.drop(m.start, s.offset())
	}
	if seen && list.kept == 0 {
		r.cuts = r.cuts[:cuts]
		return true, true
	}
	r.cut(list.close())
	return false, true
}
