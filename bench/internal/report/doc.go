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

package report

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
)

// The marks in a page between which a report stands.
const (
	docBegin = "<!-- bench:begin %s -->"
	docEnd   = "<!-- bench:end %s -->"
)

var errMarks = errors.New("the page lacks the marks")

// Markdown returns the report as a part of a page.
func (r *Report) Markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row.cells(), " | "))
	}
	fmt.Fprintf(&b, "\n%s.\n", r.conditions())
	return b.Bytes()
}

// FillDoc puts the report between its marks in a page.
func (r *Report) FillDoc(page []byte, name string) ([]byte, error) {
	begin, end := fmt.Appendf(nil, docBegin, name), fmt.Appendf(nil, docEnd, name)
	head, rest, found := bytes.Cut(page, begin)
	_, after, closed := bytes.Cut(rest, end)
	if !found || !closed {
		return nil, fmt.Errorf("%w %s and %s", errMarks, begin, end)
	}
	return bytes.Join([][]byte{head, begin, []byte("\n"), r.Markdown(), end, after}, nil), nil
}

// FillDocFile is FillDoc for a file.
func (r *Report) FillDocFile(file, name string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	filled, err := r.FillDoc(page, name)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, filled, 0o600) // keeps the mode of a file that exists
}
