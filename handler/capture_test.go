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

package handler_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// inPieces answers with a text, a few bytes at a time.
func inPieces(text string, size int) reply {
	return func(w http.ResponseWriter, _ *http.Request) error {
		for at := 0; at < len(text); at += size {
			if _, err := io.WriteString(w, text[at:min(at+size, len(text))]); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestBlankLinesMayComeBeforeAnAnswer(t *testing.T) {
	blank := strings.Repeat("\r\n \t\n", 40_000)
	for name, start := range map[string]string{"blank lines": blank, "a byte order mark": "\xef\xbb\xbf", "a byte order mark and blank lines": "\xef\xbb\xbf" + blank} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(inPieces(start+turn{calls: []call{python("call_1", "say hi")}}.whole(), 1), inPieces(start+turn{text: "done"}.whole(), 7))
				f.post(ask(nil)).says(t, "stop", "done")
				f.upstream.wants(2)
			})
			inBubble(t, nil, func(f *fixture) {
				f.upstream.then(inPieces(start+"data: "+strings.Join(append(turn{text: "done"}.chunks(), "[DONE]"), "\n\ndata: ")+"\n\n", 3))
				f.post(ask(map[string]any{"stream": true})).says(t, "stop", "done")
			})
		})
	}
}

func TestBlankLinesBeforeAnotherFormAreTheClients(t *testing.T) {
	for name, text := range map[string]string{
		"text":                   strings.Repeat("\n", 5000) + "hello",
		"text like an event":     " \n datum",
		"only blank lines":       "\n\n \n",
		"half a byte order mark": "\xef\xbb",
	} {
		t.Run(name, func(t *testing.T) {
			for size := range 4 {
				inBubble(t, nil, func(f *fixture) {
					f.upstream.then(inPieces(text, size+1))
					if w := f.post(ask(nil)); w.status != http.StatusOK || w.text() != text {
						t.Errorf("status %d, %q", w.status, w.text())
					}
				})
			}
		})
	}
}

func TestEndlessBlankLinesAreBrokenOff(t *testing.T) {
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, nil, func(f *fixture) {
			piece := strings.Repeat("\n", 64<<10)
			sent := 0
			f.upstream.then(func(w http.ResponseWriter, _ *http.Request) error {
				for ; sent < 100; sent++ {
					if _, err := io.WriteString(w, piece); err != nil {
						return err
					}
				}
				return nil
			})
			f.post(ask(map[string]any{"stream": stream})).refuses(t, http.StatusBadGateway, "broke off")
			if sent > 16 {
				t.Errorf("%d pieces were taken", sent)
			}
		})
	})
}

func TestAnswerOfTooManyMembersIsBrokenOff(t *testing.T) {
	bothForms(t, func(t *testing.T, stream bool) {
		inBubble(t, nil, func(f *fixture) {
			extra := map[string]any{}
			for i := range 20_000 {
				extra[fmt.Sprintf("member_%d", i)] = i
			}
			f.upstream.then(turn{calls: []call{python("call_1", "say hi")}, extra: extra}.reply())
			status := http.StatusBadGateway
			if stream {
				status = http.StatusOK
			}
			f.post(ask(map[string]any{"stream": stream})).refuses(t, status, "broke off")
			if ran := f.sandboxes.ran(); len(ran) != 0 {
				t.Errorf("these ran: %q", ran)
			}
		})
	})
}
