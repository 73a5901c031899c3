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

package upstream

import (
	"fmt"
	"hash/crc32"
	"net/http"
	"strconv"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum returns the checksum of a body for SumHeader.
func Sum(body []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(body, castagnoli)) }

// check follows the bytes of a body. Without the headers of the load generator
// it only counts them.
type check struct {
	size     int64
	wantSize string
	sum      uint32
	wantSum  string
	fill     byte
	strange  bool // a capital letter other than fill was there
}

func newCheck(h http.Header) *check {
	c := &check{wantSize: h.Get(SizeHeader), wantSum: h.Get(SumHeader)}
	if fill := h.Get(FillHeader); fill != "" {
		c.fill = fill[0]
	}
	return c
}

func (c *check) add(p []byte) {
	c.size += int64(len(p))
	if c.wantSum != "" {
		c.sum = crc32.Update(c.sum, castagnoli, p)
	}
	if c.fill == 0 {
		return
	}
	for _, b := range p {
		if b != c.fill && 'A' <= b && b <= 'Z' {
			c.strange = true
			return
		}
	}
}

// whole says whether the body is the one that was sent.
func (c *check) whole() bool {
	return (c.wantSize == "" || c.wantSize == strconv.FormatInt(c.size, 10)) &&
		(c.wantSum == "" || c.wantSum == fmt.Sprintf("%08x", c.sum)) && !c.strange
}
