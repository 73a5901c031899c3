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

// Code and what comes of it.

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { InvalidArgumentError, NotFoundError, SandboxError, TimeoutError } from '@e2b/code-interpreter'
import { stdout, withSandbox } from './sandbox.js'

suite('runCode', { concurrency: 4 }, () => {
  test(
    'keeps variables, files and the count of executions',
    withSandbox(async (sandbox) => {
      const first = await sandbox.runCode('x = 20; open("note", "w").write("kept")')
      const second = await sandbox.runCode('print(open("note").read()); x + 1')
      assert.equal(second.text, '21')
      assert.equal(stdout(second), 'kept\n')
      assert.equal(second.error, undefined)
      assert.deepEqual(second.results.map((r) => [r.isMainResult, r.formats()]), [[true, []]])
      assert.equal(second.executionCount, first.executionCount + 1)
    }),
  )

  test(
    'calls back while the code runs',
    withSandbox(async (sandbox) => {
      // The code ends only when a callback has heard of its first line.
      const code = `
import os, sys, time
from IPython.display import HTML, display
print('first')
while not os.path.exists('heard'): time.sleep(0.01)
print('second', file=sys.stderr)
display(HTML('<b>third</b>'))
1/0`
      const heard = []
      const execution = await sandbox.runCode(code, {
        onStdout: async ({ line, error, timestamp }) => {
          assert.equal(error, false)
          assert.equal(typeof timestamp, 'number')
          heard.push(line)
          await sandbox.runCode('touch heard', { language: 'bash' })
        },
        onStderr: ({ line, error }) => {
          assert.equal(error, true)
          heard.push(line)
        },
        onResult: (result) => heard.push(result.html),
        onError: ({ name, value }) => heard.push(`${name}: ${value}`),
      })
      assert.deepEqual(heard, ['first\n', 'second\n', '<b>third</b>', 'ZeroDivisionError: division by zero'])
      assert.match(execution.error.traceback, /1\/0/)
      assert.deepEqual(execution.logs, { stdout: ['first\n'], stderr: ['second\n'] })
    }),
  )

  test(
    'returns a line chart with its picture',
    withSandbox(async (sandbox) => {
      const { results } = await sandbox.runCode(`
import matplotlib.pyplot as plt
plt.plot([1, 2, 3], [4, 1, 9], label='s')
plt.title('T'); plt.xlabel('time (s)'); plt.ylabel('y')
plt.show()`)
      assert.equal(results.length, 1)
      const [{ png, chart, text, isMainResult }] = results
      assert.equal(isMainResult, false)
      assert.equal(text, '<Figure size 640x480 with 1 Axes>')
      assertPNG(png)
      const { x_ticks, x_tick_labels, y_ticks, y_tick_labels, ...rest } = chart
      assert.deepEqual(rest, {
        type: 'line',
        title: 'T',
        elements: [{ label: 's', points: [[1, 4], [2, 1], [3, 9]] }],
        x_label: 'time (s)',
        y_label: 'y',
        x_unit: 's',
        y_unit: null,
        x_scale: 'linear',
        y_scale: 'linear',
      })
      assert.equal(x_ticks.length, x_tick_labels.length)
      assert.equal(y_ticks.length, y_tick_labels.length)
    }),
  )

  test(
    'returns a bar chart with its picture',
    withSandbox(async (sandbox) => {
      const { results } = await sandbox.runCode(`
import matplotlib.pyplot as plt
fig, ax = plt.subplots()
ax.bar(['a', 'b'], [3, 5], label='g');`)
      assert.equal(results.length, 1)
      assertPNG(results[0].png)
      assert.deepEqual(results[0].formats(), ['png'])
      assert.deepEqual(results[0].chart, {
        type: 'bar',
        title: null,
        elements: [
          { label: 'a', group: 'g', value: 3 },
          { label: 'b', group: 'g', value: 5 },
        ],
        x_label: null,
        y_label: null,
        x_unit: null,
        y_unit: null,
      })
    }),
  )

  test(
    'runs bash beside Python, on the same files and with a state of its own',
    withSandbox(async (sandbox) => {
      await sandbox.runCode('word=kept; cd /tmp', { language: 'bash' })
      assert.equal(stdout(await sandbox.runCode('echo $word; pwd; cd', { language: 'bash' })), 'kept\n/tmp\n')
      await sandbox.runCode('open("of_python", "w").write("here")')
      const execution = await sandbox.runCode('cat of_python; echo; pwd; echo oops >&2; exit 3', { language: 'bash' })
      assert.deepEqual(execution.logs, { stdout: ['here\n/home/user\n'], stderr: ['oops\n'] })
      assert.match(execution.error.value, /exit status 3/)
    }),
  )

  test(
    'sets environment variables of the sandbox and of a run',
    withSandbox(
      async (sandbox) => {
        const code = 'import os; os.environ.get("OF_SANDBOX"), os.environ.get("OF_RUN")'
        assert.equal((await sandbox.runCode(code, { envs: { OF_RUN: 'b' } })).text, "('a', 'b')")
        assert.equal((await sandbox.runCode(code)).text, "('a', None)")
      },
      { envs: { OF_SANDBOX: 'a' } },
    ),
  )

  test(
    'ends at its timeout and keeps the state',
    withSandbox(async (sandbox) => {
      await sandbox.runCode('kept = 7')
      await assert.rejects(sandbox.runCode('while True: pass', { timeoutMs: 500 }), (error) => {
        assert.ok(error instanceof TimeoutError, error)
        assert.match(error.message, /Execution timed out/)
        return true
      })
      assert.equal((await sandbox.runCode('kept')).text, '7')
    }),
  )

  test(
    'goes on after the death of its kernel, with the files',
    withSandbox(async (sandbox) => {
      const dead = await sandbox.runCode('x = 1; open("f", "w").write("1"); import os; os._exit(3)')
      assert.equal(dead.error.name, 'ContextRestarting')
      const next = await sandbox.runCode('os = __import__("os"); os.path.exists("f"), "x" in globals()')
      assert.equal(next.text, '(True, False)')
    }),
  )

  test(
    'carries large output and every kind of text',
    withSandbox(async (sandbox) => {
      const execution = await sandbox.runCode('print("line\\n" * 100_000, end=""); "é→😀"')
      assert.equal(stdout(execution), 'line\n'.repeat(100_000))
      assert.equal(execution.text, 'é→😀')
    }),
  )

  test(
    'refuses an unknown language',
    withSandbox(async (sandbox) => {
      for (const call of [
        () => sandbox.runCode('1', { language: 'cobol' }),
        () => sandbox.createCodeContext({ language: 'cobol' }),
      ]) {
        await assert.rejects(call, (error) => error.constructor === SandboxError && /^400 /.test(error.message))
      }
      assert.equal((await sandbox.runCode('1 + 1')).text, '2')
    }),
  )
})

suite('contexts', { concurrency: 4 }, () => {
  test(
    'have state and a directory of their own, restart and go',
    withSandbox(async (sandbox) => {
      await sandbox.runCode('x = "of the default one"; import os; os.mkdir("data")')
      const context = await sandbox.createCodeContext({ cwd: '/home/user/data' })
      assert.deepEqual({ ...context, id: undefined }, { id: undefined, language: 'python', cwd: '/home/user/data' })
      assert.deepEqual((await sandbox.listCodeContexts()).filter((c) => c.id === context.id), [context])

      await sandbox.runCode('x = "of the new one"', { context })
      assert.equal((await sandbox.runCode('import os; os.getcwd(), x', { context })).text, "('/home/user/data', 'of the new one')")
      assert.equal((await sandbox.runCode('x')).text, 'of the default one')

      await sandbox.restartCodeContext(context)
      const restarted = await sandbox.runCode('import os; print(os.getcwd()); x', { context })
      assert.equal(stdout(restarted), '/home/user\n') // as E2B: its directory is gone too
      assert.equal(restarted.error.name, 'NameError')

      await sandbox.removeCodeContext(context.id)
      assert.ok((await sandbox.listCodeContexts()).every((c) => c.id !== context.id))
      for (const call of [
        () => sandbox.runCode('1', { context }),
        () => sandbox.restartCodeContext(context),
        () => sandbox.removeCodeContext(context),
      ]) {
        await assert.rejects(call, (error) => error instanceof NotFoundError && error.message.includes(context.id))
      }
    }),
  )

  test(
    'speak bash',
    withSandbox(async (sandbox) => {
      const context = await sandbox.createCodeContext({ language: 'bash', cwd: '/tmp' })
      assert.equal(context.language, 'bash')
      assert.equal(stdout(await sandbox.runCode('pwd', { context })), '/tmp\n')
      await assert.rejects(sandbox.runCode('1', { context, language: 'bash' }), InvalidArgumentError)
    }),
  )
})

function assertPNG(base64) {
  assert.equal(Buffer.from(base64, 'base64').subarray(1, 4).toString(), 'PNG')
}
