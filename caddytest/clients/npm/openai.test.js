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

// The official client.

import OpenAI from 'openai'
import { scenarios } from './scenarios.js'

async function ask({ messages, session, tools = [], stream, key, base }) {
  const client = new OpenAI({ baseURL: base, apiKey: key, maxRetries: 0 })
  const body = {
    model: 'scripted',
    messages,
    tools: [{ type: 'code_interpreter' }, ...tools.map((t) => ({ type: 'function', function: t }))],
    ...(session && { metadata: { session_id: session } }),
  }
  if (!stream) {
    const { choices } = await client.chat.completions.create(body)
    return answer(choices[0].message, choices[0].finish_reason, choices[0].message.executed_tools)
  }

  const message = { role: undefined, content: '', tool_calls: [] }
  const executed = []
  let finish
  for await (const chunk of await client.chat.completions.create({ ...body, stream: true })) {
    for (const { delta, finish_reason } of chunk.choices) {
      message.role ??= delta.role
      message.content += delta.content ?? ''
      for (const { index, id, function: f } of delta.tool_calls ?? []) {
        const call = (message.tool_calls[index] ??= { id, type: 'function', function: { name: f.name, arguments: '' } })
        call.function.arguments += f.arguments ?? ''
      }
      for (const e of delta.executed_tools ?? []) executed[e.index] = e
      finish ??= finish_reason
    }
  }
  if (message.tool_calls.length === 0) delete message.tool_calls
  return answer(message, finish, executed)
}

function answer(message, finish, executed) {
  const { executed_tools: _, ...shown } = message
  return {
    content: message.content,
    finish,
    calls: (message.tool_calls ?? []).map((c) => ({ id: c.id, ...c.function })),
    message: shown,
    executed,
    seen: JSON.stringify(shown),
  }
}

scenarios('openai', {
  ask,
  user: (content) => ({ role: 'user', content }),
  toolResult: (call, content) => ({ role: 'tool', tool_call_id: call.id, content }),
  status: (error) => error.status,
})
