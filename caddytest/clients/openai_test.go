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

package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
)

// tool is the tool that Chat Completions of the SDK does not know.
var tool = param.Override[openai.ChatCompletionFunctionToolParam](json.RawMessage(`{"type":"code_interpreter"}`))

// weather is a tool of the client.
var weather = openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
	Name: "weather",
	Parameters: shared.FunctionParameters{
		"type":       "object",
		"properties": map[string]any{"city": map[string]any{"type": "string"}},
		"required":   []string{"city"},
	},
})

// question is a request for the scripted model.
func question(text string, messages ...openai.ChatCompletionMessageParamUnion) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:         "scripted",
		Messages:      append([]openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}, messages...),
		Tools:         []openai.ChatCompletionToolUnionParam{{OfFunction: &tool}},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{},
	}
}

func newClient(opts ...option.RequestOption) openai.Client {
	return openai.NewClient(slices.Concat([]option.RequestOption{
		option.WithBaseURL(gateways.open), option.WithAPIKey("sk-go"), option.WithMaxRetries(0),
	}, opts)...)
}

// asker asks a question in one of the two forms.
type asker func(context.Context, openai.Client, openai.ChatCompletionNewParams) (*openai.ChatCompletion, []executed, error)

// executed is one entry of executed_tools.
type executed struct {
	Index     int    `json:"index"`
	Type      string `json:"type"`
	Arguments string `json:"arguments"`
	Output    string `json:"output"`
}

// inBothForms runs a test with JSON answers and with streams.
func inBothForms(t *testing.T, test func(*testing.T, asker)) {
	t.Helper()
	for name, ask := range map[string]asker{"json": askJSON, "stream": askStream} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, ask)
		})
	}
}

func askJSON(ctx context.Context, client openai.Client, params openai.ChatCompletionNewParams) (*openai.ChatCompletion, []executed, error) {
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
	answer, err := client.Chat.Completions.New(ctx, params)
	if err != nil {
		return nil, nil, err
	}
	if len(answer.Choices) != 1 {
		return nil, nil, fmt.Errorf("%d choices", len(answer.Choices))
	}
	raw := answer.Choices[0].Message.JSON.ExtraFields["executed_tools"].Raw()
	var tools []executed
	if raw != "" {
		err = json.Unmarshal([]byte(raw), &tools)
	}
	return answer, tools, errors.Join(err, noTrace(answer.RawJSON(), raw))
}

func askStream(ctx context.Context, client openai.Client, params openai.ChatCompletionNewParams) (*openai.ChatCompletion, []executed, error) {
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := client.Chat.Completions.NewStreaming(ctx, params)
	defer func() { _ = stream.Close() }()
	acc := new(openai.ChatCompletionAccumulator)
	byIndex := map[int]executed{}
	for stream.Next() {
		chunk := stream.Current()
		if !acc.AddChunk(chunk) {
			return nil, nil, fmt.Errorf("the accumulator refuses %s", chunk.RawJSON())
		}
		raw := ""
		for _, c := range chunk.Choices {
			var tools []executed
			if raw = c.Delta.JSON.ExtraFields["executed_tools"].Raw(); raw != "" {
				if err := json.Unmarshal([]byte(raw), &tools); err != nil {
					return nil, nil, err
				}
			}
			for _, e := range tools {
				byIndex[e.Index] = e // the second time with its output
			}
		}
		if err := noTrace(chunk.RawJSON(), raw); err != nil {
			return nil, nil, err
		}
	}
	if err := stream.Err(); err != nil {
		return nil, nil, err
	}
	if len(acc.Choices) != 1 {
		return nil, nil, fmt.Errorf("%d choices", len(acc.Choices))
	}
	var tools []executed
	for i := range len(byIndex) {
		tools = append(tools, byIndex[i])
	}
	return &acc.ChatCompletion, tools, nil
}

// noTrace fails when a part of an answer speaks of the hidden tool anywhere
// but in executed_tools.
func noTrace(part, executedTools string) error {
	if rest := strings.ReplaceAll(part, executedTools, ""); strings.Contains(rest, "run_python") {
		return fmt.Errorf("a trace of the hidden tool in %s", rest)
	}
	return nil
}

// final fails unless an answer is complete and has the given text.
func final(t *testing.T, answer *openai.ChatCompletion, err error, want string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	choice := answer.Choices[0]
	if choice.Message.Content != want || choice.FinishReason != "stop" || len(choice.Message.ToolCalls) != 0 {
		t.Errorf("answer %q with finish %q and %d calls, want %q", choice.Message.Content, choice.FinishReason, len(choice.Message.ToolCalls), want)
	}
	if answer.Usage.PromptTokens == 0 || answer.Usage.TotalTokens != answer.Usage.PromptTokens+answer.Usage.CompletionTokens {
		t.Errorf("usage %+v", answer.Usage)
	}
}

func TestAnswerIsTheSameInBothForms(t *testing.T) {
	t.Parallel()
	inBothForms(t, func(t *testing.T, ask asker) {
		answer, tools, err := ask(t.Context(), newClient(), question("Run this: print(6*7)"))
		final(t, answer, err, "The tool returned: 42")
		want := executed{Index: 0, Type: "python", Arguments: `{"code":"print(6*7)"}`, Output: "42"}
		if len(tools) != 1 || tools[0] != want {
			t.Errorf("executed_tools %+v, want %+v", tools, want)
		}
	})
}

func TestEachRoundIsShown(t *testing.T) {
	t.Parallel()
	inBothForms(t, func(t *testing.T, ask asker) {
		answer, tools, err := ask(t.Context(), newClient(), question("[rounds 3] Run this: print(1)"))
		final(t, answer, err, strings.TrimSuffix(strings.Repeat("The tool returned: 1\n", 3), "\n"))
		if len(tools) != 3 || tools[2].Index != 2 || tools[2].Output != "1" {
			t.Errorf("executed_tools %+v", tools)
		}
	})
}

func TestSessionKeepsItsVariables(t *testing.T) {
	t.Parallel()
	inBothForms(t, func(t *testing.T, ask asker) {
		first, second := question("Run this: x = 42"), question("Run this: print(x)")
		first.Metadata = shared.Metadata{"session_id": t.Name()}
		second.Metadata = first.Metadata
		answer, _, err := ask(t.Context(), newClient(), first)
		final(t, answer, err, "The tool returned: (no output)")
		answer, _, err = ask(t.Context(), newClient(), second)
		final(t, answer, err, "The tool returned: 42")

		answer, _, err = ask(t.Context(), newClient(option.WithAPIKey("sk-someone-else")), second)
		if err != nil || !strings.Contains(answer.Choices[0].Message.Content, "NameError") {
			t.Errorf("another key gets %+v, %v: want a NameError", answer, err)
		}
	})
}

func TestMixedTurn(t *testing.T) {
	t.Parallel()
	inBothForms(t, func(t *testing.T, ask asker) {
		params := question("[both] Run this: print(6*7)")
		params.Tools = append(params.Tools, weather)
		answer, tools, err := ask(t.Context(), newClient(), params)
		if err != nil {
			t.Fatal(err)
		}
		choice := answer.Choices[0]
		if choice.FinishReason != "tool_calls" || len(choice.Message.ToolCalls) != 1 || len(tools) != 1 {
			t.Fatalf("finish %q, calls %+v, executed_tools %+v", choice.FinishReason, choice.Message.ToolCalls, tools)
		}
		call := choice.Message.ToolCalls[0]
		if call.Function.Name != "weather" || call.Function.Arguments != `{"city":"example"}` {
			t.Errorf("call %+v", call)
		}
		params.Messages = append(params.Messages, choice.Message.ToParam(), openai.ToolMessage("sunny", call.ID))
		answer, _, err = ask(t.Context(), newClient(), params)
		final(t, answer, err, "The tool returned: 42\nThe tool returned: sunny")
	})
}

func TestErrorBeforeTheAnswerIsTheUpstreams(t *testing.T) {
	t.Parallel()
	inBothForms(t, func(t *testing.T, ask asker) {
		for knob, status := range map[string]int{"[status 429]": 429, "[status 400 after]": 400} {
			_, _, err := ask(t.Context(), newClient(), question(knob+" Run this: print(1)"))
			// A stream that has begun cannot change its status: "after" is an error in it.
			if apiErr := new(openai.Error); errors.As(err, &apiErr) {
				if apiErr.StatusCode != status || apiErr.Message != scriptedError {
					t.Errorf("%s: status %d, message %q", knob, apiErr.StatusCode, apiErr.Message)
				}
			} else if err == nil || !strings.Contains(err.Error(), scriptedError) {
				t.Errorf("%s: error %v", knob, err)
			}
		}
		_, _, err := ask(t.Context(), newClient(option.WithBaseURL(gateways.locked)), question("Run this: print(1)"))
		apiErr := new(openai.Error)
		if !errors.As(err, &apiErr) || apiErr.StatusCode != http.StatusUnauthorized || apiErr.Code != "invalid_api_key" {
			t.Errorf("wrong key: %v", err)
		}
		answer, _, err := ask(t.Context(), newClient(option.WithBaseURL(gateways.locked), option.WithAPIKey(upstreamKey)), question("Run this: print(1)"))
		final(t, answer, err, "The tool returned: 1")
	})
}

func TestErrorInTheStream(t *testing.T) {
	t.Parallel()
	for _, knob := range []string{"[fail-stream]", "[fail-stream after]", "[cut]", "[cut after]"} {
		t.Run(knob, func(t *testing.T) {
			t.Parallel()
			_, _, err := askStream(t.Context(), newClient(), question(knob+" Run this: print(1)"))
			if err == nil || strings.HasPrefix(knob, "[fail") && !strings.Contains(err.Error(), scriptedError) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// countKeepalives is the transport of a client that counts comment lines.
type countKeepalives struct {
	n atomic.Int64
}

func (c *countKeepalives) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		resp.Body = &countingBody{resp.Body, &c.n}
	}
	return resp, err
}

type countingBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(bytes.Count(p[:n], []byte(": keep-alive\n"))))
	return n, err
}

func TestSilenceIsBridged(t *testing.T) {
	t.Parallel()
	seconds := int(silence.Seconds())
	for name, text := range map[string]string{
		"code":  fmt.Sprintf("Run this: import time; time.sleep(%d); print('awake')", seconds),
		"model": fmt.Sprintf("[silent %d after] Run this: print('awake')", seconds),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counter := new(countKeepalives)
			client := newClient(option.WithHTTPClient(&http.Client{Transport: counter}))
			began := time.Now()
			answer, _, err := askStream(t.Context(), client, question(text))
			final(t, answer, err, "The tool returned: awake")
			if took := time.Since(began); took < silence {
				t.Errorf("took %s, want at least %s of silence", took, silence)
			}
			// One each 10 s, of which the first or last may fall outside.
			if want := int64(seconds/10) - 1; counter.n.Load() < want {
				t.Errorf("%d keep-alives in %s, want at least %d", counter.n.Load(), silence, want)
			}
		})
	}
}
