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

// Package scriptedmodel is a small OpenAI-compatible upstream for demos and
// tests. It speaks the wire format of Chat Completions, as JSON and as
// server-sent events, and follows a script instead of thinking:
//
//   - The last user message quotes Python after a colon, as in
//     "Run this: print(6*7)", or in a Markdown fence (```python). The model
//     asks for exactly that code, through the first function tool of the
//     request that has a required string parameter named "code".
//   - After a tool result it reports "The tool returned: " and the result.
//   - Without code, without such a tool, or with tool_choice "none", it
//     answers in text.
//
// The quoted code is everything after the first colon that white space
// follows, or what stands inside the fence; single backticks around the whole
// of it are taken off.
//
// Like the real API it refuses tools of types it does not know and
// conversations in which a tool call has no result.
//
// # Knobs
//
// Words in square brackets in front of the code change how the model answers.
// They count for the turn that answers the user; a knob that ends in " after",
// as in [status 503 after], counts for the turns after a tool result instead.
//
//	[talk]         say a sentence in front of the tool call
//	[both]         call also the first tool of the client that takes no code
//	[other]        call only the first tool of the client that takes no code
//	[twice]        call the code tool two times in one turn
//	[rounds 3]     ask for the code three times, each time after the result
//	[loop]         ask for the code again and again
//	[slow]         wait 200 ms between two chunks, in every turn; [slow 0.5] waits 0.5 s
//	[silent 60]    say nothing for 60 s: a stream after its first chunk, JSON in front of the answer
//	[status 503]   answer with that status and an error object
//	[fail]         the same as [status 500]
//	[html 502]     answer with that status and an HTML page
//	[fail-stream]  an error object in the middle of a stream; JSON gets a 500
//	[cut]          break the connection in the middle of the answer
package scriptedmodel
