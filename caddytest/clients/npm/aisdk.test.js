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

// The AI SDK with its provider for OpenAI-compatible servers.

import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, jsonSchema, streamText, tool } from 'ai'
import { scenarios } from './scenarios.js'

async function ask({ messages, session, tools = [], stream, key, base }) {
  const provider = createOpenAICompatible({
    name: 'gateway',
    baseURL: base,
    apiKey: key,
    includeUsage: true,
    // The provider knows function tools only.
    transformRequestBody: (body) => ({ ...body, tools: [{ type: 'code_interpreter' }, ...(body.tools ?? [])] }),
  })
  const options = {
    model: provider('scripted'),
    messages,
    maxRetries: 0,
    tools: Object.fromEntries(
      tools.map((t) => [t.name, tool({ description: t.description, inputSchema: jsonSchema(t.parameters) })]),
    ),
    ...(session && { providerOptions: { gateway: { metadata: { session_id: session } } } }),
  }
  if (!stream) return answer(await generateText(options))

  const parts = []
  let failure
  const result = streamText({ ...options, onError: ({ error }) => (failure ??= error) })
  for await (const part of result.fullStream) {
    if (part.type === 'error') failure ??= part.error
    parts.push(part)
  }
  if (failure) throw failure instanceof Error ? failure : new Error(failure.message ?? String(failure))
  return answer({
    text: await result.text,
    finishReason: await result.finishReason,
    toolCalls: await result.toolCalls,
    responseMessages: await result.responseMessages,
    parts,
  })
}

function answer({ text, finishReason, toolCalls, responseMessages, parts }) {
  const shown = parts?.filter((p) => p.type !== 'raw')
  return {
    content: text,
    finish: finishReason === 'tool-calls' ? 'tool_calls' : finishReason,
    calls: toolCalls.map((c) => ({ id: c.toolCallId, name: c.toolName, arguments: JSON.stringify(c.input) })),
    message: responseMessages.at(-1),
    seen: JSON.stringify([text, responseMessages, shown?.map(({ type, text, toolName }) => [type, text, toolName])]),
  }
}

scenarios('@ai-sdk/openai-compatible', {
  ask,
  user: (content) => ({ role: 'user', content }),
  toolResult: (call, text) => ({
    role: 'tool',
    content: [{ type: 'tool-result', toolCallId: call.id, toolName: call.name, output: { type: 'text', value: text } }],
  }),
  status: (error) => error.statusCode,
})
