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
	"crypto/rand"
	"strconv"
	"time"
)

// idOf returns the id of an answer to the client in JSON: the one that the
// upstream gave, or one of ours where it gave none.
func idOf(v []byte) []byte {
	if body, ok := stringBody(v); ok && len(body) > 0 {
		return bytes.Clone(v)
	}
	return appendQuoted(nil, "chatcmpl-"+rand.Text())
}

// createdOf is idOf for the time of an answer.
func createdOf(v []byte) []byte {
	if len(v) > 0 {
		return bytes.Clone(v)
	}
	return strconv.AppendInt(nil, time.Now().Unix(), 10)
}
