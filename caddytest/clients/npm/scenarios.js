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

// What every client has to get right, written once. A client is an object:
//
//   ask({ messages, session, tools, stream, key, base })
//       asks the model and resolves to { content, finish, calls, message, seen };
//       rejects with the client's own error
//   user(text), toolResult(call, text)   messages in the client's form
//   status(error)                        the HTTP status an error tells, if any
//
// calls are { id, name, arguments }, message is what to append to the
// conversation, seen is everything the client got to know as text, apart from
// executed_tools. executed is optional: the executed_tools.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'

const { BASE_URL, LOCKED_URL, LOCKED_KEY } = process.env
const silence = Number(process.env.SILENT_SECONDS ?? 60)
const scriptedError = /The script asked for this error/

export const weather = {
  name: 'weather',
  description: 'The weather of a city',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

export function scenarios(name, client) {
  // Together, as most of the time is silence.
  describe(name, { concurrency: true }, () => {
    for (const stream of [false, true]) {
      const form = stream ? 'stream' : 'json'
      // Each scenario is bounded: a client that hangs fails its test.
      const scenario = (title, run) => test(`${form}: ${title}`, { timeout: (silence + 60) * 1000 }, run)
      const ask = (text, more = {}) =>
        client.ask({ messages: [client.user(text)], stream, key: 'sk-js', base: BASE_URL, ...more })

      const answers = (answer, text) => {
        assert.equal(answer.content, text)
        assert.equal(answer.finish, 'stop')
        assert.deepEqual(answer.calls, [])
        assert.doesNotMatch(answer.seen, /run_python/)
      }

      scenario('code runs', async () => {
        const answer = await ask('Run this: print(6*7)')
        answers(answer, 'The tool returned: 42')
        if (answer.executed) {
          assert.equal(answer.executed.length, 1)
          assert.equal(answer.executed[0].output, '42')
          assert.equal(answer.executed[0].arguments, '{"code":"print(6*7)"}')
        }
      })

      scenario('several rounds', async () => {
        answers(await ask('[rounds 2] Run this: print(1)'), 'The tool returned: 1\nThe tool returned: 1')
      })

      scenario('text without the tool', async () => {
        const answer = await ask('Hello')
        assert.match(answer.content, /^Hello from the scripted model/)
      })

      scenario('a session keeps its variables', async () => {
        const session = randomUUID()
        await ask('Run this: x = 42', { session })
        answers(await ask('Run this: print(x)', { session }), 'The tool returned: 42')
        const other = await ask('Run this: print(x)', { session: randomUUID() })
        assert.match(other.content, /NameError/)
      })

      scenario('a mixed turn', async () => {
        const question = client.user('[both] Run this: print(6*7)')
        const first = await ask('', { messages: [question], tools: [weather] })
        assert.equal(first.finish, 'tool_calls')
        assert.deepEqual(
          first.calls.map((c) => [c.name, JSON.parse(c.arguments)]),
          [['weather', { city: 'example' }]],
        )
        assert.doesNotMatch(first.seen, /run_python/)
        const second = await ask('', {
          messages: [question, first.message, client.toolResult(first.calls[0], 'sunny')],
          tools: [weather],
        })
        answers(second, 'The tool returned: 42\nThe tool returned: sunny')
      })

      scenario('an error before the answer', async () => {
        for (const status of [400, 429, 500]) {
          await assert.rejects(ask(`[status ${status}] Run this: print(1)`), (error) => {
            assert.equal(client.status(error), status)
            assert.match(error.message, scriptedError)
            return true
          })
        }
      })

      scenario('a key that the upstream refuses', async () => {
        await assert.rejects(ask('Run this: print(1)', { base: LOCKED_URL }), (error) => {
          assert.equal(client.status(error), 401)
          return true
        })
        answers(await ask('Run this: print(1)', { base: LOCKED_URL, key: LOCKED_KEY }), 'The tool returned: 1')
      })

      scenario('an error in the answer', async () => {
        for (const knob of ['[fail-stream]', '[fail-stream after]']) {
          await assert.rejects(ask(`${knob} Run this: print(1)`), (error) => {
            assert.match(error.message, scriptedError)
            return true
          })
        }
      })

      scenario('a broken connection', async () => {
        for (const knob of ['[cut]', '[cut after]']) {
          await assert.rejects(ask(`${knob} Run this: print(1)`), (error) => {
            assert.notEqual(client.status(error), 400)
            return true
          })
        }
      })

      scenario(`${silence} s of silence while code runs`, async () => {
        answers(await ask(`Run this: import time; time.sleep(${silence}); print("awake")`), 'The tool returned: awake')
      })

      scenario(`${silence} s of silence of the model`, async () => {
        answers(await ask(`[silent ${silence} after] Run this: print("awake")`), 'The tool returned: awake')
      })
    }
  })
}
