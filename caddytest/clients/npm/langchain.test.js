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

// LangChain's model for Chat Completions.

import { HumanMessage, ToolMessage } from '@langchain/core/messages'
import { ChatOpenAI } from '@langchain/openai'
import { scenarios } from './scenarios.js'

async function ask({ messages, session, tools = [], stream, key, base }) {
  const model = new ChatOpenAI({
    model: 'scripted',
    apiKey: key,
    maxRetries: 0,
    configuration: { baseURL: base },
    modelKwargs: {
      // bindTools would take the built-in tool as a wish for the Responses API.
      tools: [{ type: 'code_interpreter' }, ...tools.map((t) => ({ type: 'function', function: t }))],
      ...(session && { metadata: { session_id: session } }),
    },
  })
  if (!stream) return answer(await model.invoke(messages))

  let all
  for await (const chunk of await model.stream(messages)) all = all ? all.concat(chunk) : chunk
  return answer(all)
}

function answer(message) {
  return {
    content: message.content,
    finish: message.response_metadata.finish_reason,
    calls: (message.tool_calls ?? []).map((c) => ({ id: c.id, name: c.name, arguments: JSON.stringify(c.args) })),
    message,
    seen: JSON.stringify(message),
  }
}

scenarios('@langchain/openai', {
  ask,
  user: (text) => new HumanMessage(text),
  toolResult: (call, content) => new ToolMessage({ tool_call_id: call.id, content }),
  status: (error) => error.status ?? error.cause?.status,
})
