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

package scriptedmodel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// request is what the model reads of a chat completion request.
type request struct {
	Model         string    `json:"model"`
	Messages      []message `json:"messages"`
	Stream        bool      `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools      []tool     `json:"tools"`
	ToolChoice toolChoice `json:"tool_choice"`
}

// message is one entry of the conversation.
type message struct {
	Role       string `json:"role"`
	Content    text   `json:"content"`
	ToolCallID string `json:"tool_call_id"`
	ToolCalls  []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
}

// text is the content of a message: a string, or the text parts of an array.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err == nil { // null gives ""
		*t = text(s)
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return fmt.Errorf("content is neither a string nor an array of parts: %w", err)
	}
	var all strings.Builder
	for _, p := range parts {
		if p.Type == "text" {
			all.WriteString(p.Text)
		}
	}
	*t = text(all.String())
	return nil
}

// tool is one entry of the request's tools.
type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name       string `json:"name"`
		Parameters struct {
			Properties map[string]struct {
				Type any `json:"type"` // a string, or an array of them
			} `json:"properties"`
			Required []string `json:"required"`
		} `json:"parameters"`
	} `json:"function"`
}

// takesCode reports whether t is a function with a required string named code.
func (t tool) takesCode() bool {
	params := t.Function.Parameters
	return t.Type == "function" && params.Properties["code"].Type == "string" &&
		slices.Contains(params.Required, "code")
}

// sampleArguments returns arguments that fit the required parameters of t.
func (t tool) sampleArguments() string {
	args := map[string]any{}
	for _, name := range t.Function.Parameters.Required {
		switch t.Function.Parameters.Properties[name].Type {
		case "integer", "number":
			args[name] = 1
		case "boolean":
			args[name] = true
		case "array":
			args[name] = []any{}
		case "object":
			args[name] = map[string]any{}
		default:
			args[name] = "example"
		}
	}
	return encode(args)
}

// toolChoice is "auto", "none", "required", or the name of a forced function.
type toolChoice struct {
	mode     string
	function string
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *toolChoice) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &c.mode); err == nil {
		return nil
	}
	var named struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if err := json.Unmarshal(b, &named); err != nil {
		return fmt.Errorf("tool_choice is neither a string nor an object: %w", err)
	}
	if named.Type != "function" {
		// Also allowed_tools, which the model needs not obey: it follows its script.
		return nil
	}
	c.mode, c.function = "function", named.Function.Name
	return nil
}

// parse reads a request and refuses what the real API refuses.
func parse(body []byte) (*request, *apiError) {
	var req request
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, invalid("", "We could not parse the JSON body of your request: %v", err)
	}
	if req.Model == "" {
		return nil, invalid("model", "you must provide a model parameter")
	}
	if len(req.Messages) == 0 {
		return nil, invalid("messages", "Invalid 'messages': empty array. Expected an array with minimum length 1.")
	}
	for i, t := range req.Tools {
		param := fmt.Sprintf("tools[%d].type", i)
		if t.Type != "function" && t.Type != "custom" {
			return nil, invalid(param, "Invalid value: '%s'. Supported values are: 'function' and 'custom'.", t.Type)
		}
	}
	if name := req.ToolChoice.function; name != "" {
		if !slices.ContainsFunc(req.Tools, func(t tool) bool { return t.Function.Name == name }) {
			return nil, invalid("tool_choice", "Tool choice '%s' not found in 'tools' parameter.", name)
		}
	}
	if err := checkCalls(req.Messages); err != nil {
		return nil, err
	}
	return &req, nil
}

// checkCalls refuses a conversation in which a tool call has no result, or a
// result has no call in front of it.
func checkCalls(messages []message) *apiError {
	open := map[string]bool{}
	for i, m := range messages {
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return invalid(fmt.Sprintf("messages.[%d].role", i),
					"Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
			}
			delete(open, m.ToolCallID)
			continue
		}
		if len(open) > 0 {
			break
		}
		for _, call := range m.ToolCalls {
			open[call.ID] = true
		}
	}
	if len(open) > 0 {
		return invalid("messages", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.")
	}
	return nil
}
