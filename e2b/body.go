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

package e2b

import (
	"compress/gzip"
	"errors"
	"io"
	"sync"
)

// answerBody is a decoded body. It may be closed more than once and, to end a
// Read that blocks, at the same time as it is read.
type answerBody struct {
	reader io.Reader
	whole  bool // its end has been read
	body   io.Closer
	once   sync.Once
	err    error
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.reader.Read(p)
	b.whole = b.whole || errors.Is(err, io.EOF)
	return n, err
}

// Close closes the connection's side of the body.
func (b *answerBody) Close() error {
	b.once.Do(func() { b.err = b.body.Close() })
	return b.err
}

// limitedReader fails with errTooLarge when there is more than left bytes to
// read: io.LimitedReader would make a cut body look like a whole one.
type limitedReader struct {
	r    io.Reader
	left int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if int64(len(p))-1 > l.left {
		p = p[:l.left+1] // one more than allowed tells the end from too much
	}
	n, err := l.r.Read(p)
	if int64(n) > l.left {
		n = int(l.left)
		err = errTooLarge
	}
	l.left -= int64(n)
	return n, err
}

// lazyGzip decompresses from the first Read on: the header of the stream may
// arrive long after that of the answer.
type lazyGzip struct {
	wire io.Reader
	gz   *gzip.Reader
}

func (l *lazyGzip) Read(p []byte) (int, error) {
	if l.gz == nil {
		gz, err := gzip.NewReader(l.wire)
		if err != nil {
			return 0, err
		}
		l.gz = gz
	}
	return l.gz.Read(p)
}
