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

package caddytest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// client sends requests to one base URL.
type client struct {
	t      *testing.T
	base   string // up to /chat/completions
	header http.Header
	http   *http.Client
}

// client returns a client of the first site, with pairs of header fields.
func (g *gateway) client(header ...string) *client {
	return newClient(g.t, g.url+"/v1", header...)
}

func newClient(t *testing.T, base string, header ...string) *client {
	// A connection that the gateway closes in a reload looks like a failure.
	transport := &http.Transport{DisableKeepAlives: true}
	c := &client{t: t, base: base, header: http.Header{"Content-Type": {"application/json"}}, http: &http.Client{Transport: transport}}
	for i := 0; i < len(header); i += 2 {
		c.header.Add(header[i], header[i+1])
	}
	return c
}

// fields are members of a request body; a nil one removes what is there.
type fields map[string]any

// run is a request to run a program. Words in square brackets in front of it
// are the scripted model's knobs.
func run(code string, more ...fields) fields {
	return with(append([]fields{{
		"model":    "scripted",
		"messages": []any{fields{"role": "user", "content": "Run this: " + code}},
		"tools":    []any{fields{"type": "code_interpreter"}},
	}}, more...)...)
}

// knobs is a request of which the model does something unusual.
func knobs(words, code string, more ...fields) fields {
	return run(code, append([]fields{{"messages": []any{fields{"role": "user", "content": words + " Run this: " + code}}}}, more...)...)
}

// with joins fields; later ones win.
func with(list ...fields) fields {
	all := fields{}
	for _, f := range list {
		for name, value := range f {
			if value == nil {
				delete(all, name)
			} else {
				all[name] = value
			}
		}
	}
	return all
}

var streamed = fields{"stream": true, "stream_options": fields{"include_usage": true}}

// in names a session.
func in(name string) fields {
	return fields{"metadata": fields{"session_id": sessionPrefix + name}}
}

func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// answer is what came back, in one piece or streamed.
type answer struct {
	status   int
	header   http.Header
	body     string
	content  string
	finish   string
	calls    []toolCall
	executed []executed // as they ended
	begun    int        // executions that were announced
	usage    map[string]any
	failure  map[string]any // the error object
	ids      map[string]bool
	comments int
	done     bool
}

type toolCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type executed struct {
	Index     int     `json:"index"`
	Type      string  `json:"type"`
	Name      string  `json:"name"`
	Arguments string  `json:"arguments"`
	Output    *string `json:"output"`
	Results   []struct {
		Text  string         `json:"text"`
		PNG   string         `json:"png"`
		Chart map[string]any `json:"chart"`
	} `json:"code_results"`
}

// output is what the program wrote; only the last of several.
func (a *answer) output() string {
	if len(a.executed) == 0 {
		return ""
	}
	return *a.executed[len(a.executed)-1].Output
}

type completion struct {
	ID      string         `json:"id"`
	Error   map[string]any `json:"error"`
	Usage   map[string]any `json:"usage"`
	Choices []struct {
		Message piece   `json:"message"`
		Delta   piece   `json:"delta"`
		Finish  *string `json:"finish_reason"`
	} `json:"choices"`
}

type piece struct {
	Content  string     `json:"content"`
	Calls    []toolCall `json:"tool_calls"`
	Executed []executed `json:"executed_tools"`
}

func (a *answer) take(data string) error {
	var c completion
	if err := json.Unmarshal([]byte(data), &c); err != nil {
		return fmt.Errorf("%w in %q", err, data)
	}
	if c.Error != nil {
		a.failure = c.Error
	}
	if c.Usage != nil {
		a.usage = c.Usage
	}
	if c.ID != "" {
		a.ids[c.ID] = true
	}
	for _, choice := range c.Choices {
		if choice.Finish != nil {
			if a.finish != "" {
				return fmt.Errorf("a second finish_reason: %s", data)
			}
			a.finish = *choice.Finish
		}
		for _, p := range []piece{choice.Message, choice.Delta} {
			a.content += p.Content
			for _, call := range p.Calls {
				if call.ID != "" {
					a.calls = append(a.calls, call)
				} else {
					a.calls[call.Index].Function.Arguments += call.Function.Arguments
				}
			}
			for _, tool := range p.Executed {
				if tool.Output == nil {
					a.begun++
				} else {
					a.executed = append(a.executed, tool)
				}
			}
		}
	}
	return nil
}

// line takes one line of a stream.
func (a *answer) line(line string) error {
	a.body += line + "\n"
	data, isData := strings.CutPrefix(line, "data: ")
	switch {
	case line == "":
	case strings.HasPrefix(line, ":"):
		a.comments++
	case !isData:
		return fmt.Errorf("a line that is no data: %q", line)
	case a.done:
		return fmt.Errorf("after [DONE]: %q", line)
	case data == "[DONE]":
		a.done = true
	default:
		return a.take(data)
	}
	return nil
}

// stream is an answer that is still coming.
type stream struct {
	answer
	t     *testing.T
	resp  *http.Response
	lines *bufio.Scanner
	leave context.CancelFunc
}

// open sends a request and returns when its header has come.
func (c *client) open(body any) *stream {
	c.t.Helper()
	s, err := c.try(body)
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// try is open for what may fail.
func (c *client) try(body any) (*stream, error) {
	text, ok := body.(string)
	if !ok {
		text = encode(body)
	}
	return c.send(context.Background(), strings.NewReader(text))
}

// send is try for a body of any kind.
func (c *client) send(ctx context.Context, body io.Reader) (*stream, error) {
	ctx, leave := context.WithTimeout(ctx, 2*patience)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/chat/completions", body)
	if err != nil {
		leave()
		return nil, err
	}
	r.Header = c.header.Clone()
	resp, err := c.http.Do(r)
	if err != nil {
		leave()
		return nil, err
	}
	s := &stream{t: c.t, resp: resp, lines: bufio.NewScanner(resp.Body), leave: leave}
	s.lines.Buffer(nil, 64<<20)
	s.status, s.header, s.ids = resp.StatusCode, resp.Header, map[string]bool{}
	return s, nil
}

// next reads until a line of the stream contains a text.
func (s *stream) next(text string) {
	s.t.Helper()
	for s.lines.Scan() {
		if err := s.line(s.lines.Text()); err != nil {
			s.t.Fatal(err)
		}
		if strings.Contains(s.lines.Text(), text) {
			return
		}
	}
	s.t.Fatalf("the stream ended (%v) before %q came:\n%s", s.lines.Err(), text, s.body)
}

// rest reads to the end.
func (s *stream) rest() (*answer, error) {
	defer s.leave()
	defer s.resp.Body.Close()
	if strings.HasPrefix(s.header.Get("Content-Type"), "text/event-stream") {
		for s.lines.Scan() {
			if err := s.line(s.lines.Text()); err != nil {
				return &s.answer, err
			}
		}
		return &s.answer, s.lines.Err()
	}
	body, err := io.ReadAll(s.resp.Body)
	s.body = string(body)
	if err == nil && strings.HasPrefix(s.header.Get("Content-Type"), "application/json") {
		err = s.take(s.body)
	}
	return &s.answer, err
}

// end reads to the end of a stream that must have one.
func (s *stream) end() *answer {
	s.t.Helper()
	a, err := s.rest()
	if err != nil {
		s.t.Fatalf("%v after\n%s", err, a.body)
	}
	if len(a.ids) > 1 {
		s.t.Errorf("the answer has several ids: %v", a.ids)
	}
	if a.status == http.StatusOK && strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") && !a.done {
		s.t.Errorf("the stream has no [DONE]:\n%s", a.body)
	}
	return a
}

// ask sends a request and reads the answer.
func (c *client) ask(body any) *answer {
	c.t.Helper()
	return c.open(body).end()
}

// says checks for an answer in which the model reports what its tool returned.
func (a *answer) says(t *testing.T, text string) *answer {
	t.Helper()
	if err := a.said(text); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *answer) said(text string) error {
	switch {
	case a.status != http.StatusOK || a.failure != nil:
		return fmt.Errorf("status %d: %s", a.status, a.body)
	case a.finish != "stop" || !strings.Contains(a.content, text):
		return fmt.Errorf("the model said %q with finish %q, want %q", a.content, a.finish, text)
	case len(a.calls) != 0:
		return errors.New("the client got calls of a hidden tool")
	}
	return nil
}

// refuses checks for an error object with a status.
func (a *answer) refuses(t *testing.T, status int, text string) {
	t.Helper()
	if a.status != status || a.failure == nil || !strings.Contains(fmt.Sprint(a.failure), text) {
		t.Errorf("status %d, want %d, and %q in the error of\n%s", a.status, status, text, a.body)
	}
}

// within checks how long something took.
func within(t *testing.T, least, most time.Duration, since time.Time) {
	t.Helper()
	if took := time.Since(since); took < least || took > most {
		t.Errorf("it took %v, want %v to %v", took.Round(time.Millisecond), least, most)
	}
}
