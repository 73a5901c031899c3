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

// The life of sandboxes, and the SDK's errors.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { AuthenticationError, Sandbox, SandboxError, SandboxNotFoundError, TimeoutError } from '@e2b/code-interpreter'
import { create, until, withSandbox } from './sandbox.js'

suite('sandboxes', { concurrency: 4 }, () => {
  test('are listed by metadata, in pages', async () => {
    // Each character here means something in a query.
    const group = `${randomUUID()} a&b=c+d%20é`
    const created = await Promise.all([0, 1, 2].map((n) => create({ metadata: { group, 'the number': String(n) } })))
    try {
      const paginator = Sandbox.list({ query: { metadata: { group } }, limit: 2 })
      const pages = []
      while (paginator.hasNext) pages.push(await paginator.nextItems())
      assert.deepEqual(pages.map((page) => page.length), [2, 1])
      const all = pages.flat()
      assert.deepEqual(new Set(all.map((s) => s.sandboxId)), new Set(created.map((s) => s.sandboxId)))
      for (const s of all) {
        assert.equal(s.state, 'running')
        assert.equal(s.metadata.group, group)
        assert.ok(s.endAt > s.startedAt)
      }

      const [one, ...more] = await Sandbox.list({ query: { metadata: { group, 'the number': '1' } } }).nextItems()
      assert.equal(one.sandboxId, created[1].sandboxId)
      assert.equal(more.length, 0)
      const none = await Sandbox.list({ query: { metadata: { group, 'the number': '9' } } }).nextItems()
      assert.equal(none.length, 0)
    } finally {
      await Promise.all(created.map((s) => s.kill()))
    }
  })

  test(
    'are found again with their state',
    withSandbox(async (sandbox) => {
      await sandbox.runCode('x = 5')
      const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 120_000 })
      assert.equal((await again.runCode('x')).text, '5')
      const info = await again.getInfo()
      assert.equal(info.sandboxId, sandbox.sandboxId)
      assert.ok(info.endAt - Date.now() > 100_000, 'connecting extends the life')
      await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 1_000 })
      assert.ok((await again.getInfo()).endAt - Date.now() > 100_000, 'connecting never shortens it')
    }),
  )

  test('end at their timeout unless it is set anew', async () => {
    const extended = await create({ timeoutMs: 3_000 })
    await extended.setTimeout(60_000)
    const forgotten = await create({ timeoutMs: 3_000 }) // would be the later one to end
    try {
      await extended.runCode('x = 5')
      await until(async () => !(await forgotten.isRunning()))
      await assert.rejects(() => forgotten.runCode('1'), TimeoutError)
      assert.equal((await extended.runCode('x')).text, '5')

      await extended.setTimeout(0)
      await until(async () => !(await extended.isRunning()))
    } finally {
      await Promise.all([extended.kill(), forgotten.kill()])
    }
  })

  test('are gone when they are killed', async () => {
    const sandbox = await create()
    const other = await create()
    try {
      assert.equal(await sandbox.isRunning(), true)
      assert.equal(await sandbox.kill(), true)
      assert.equal(await sandbox.kill(), false)
      assert.equal(await sandbox.isRunning(), false)
      for (const call of [
        () => sandbox.runCode('1'),
        () => sandbox.createCodeContext(),
        () => sandbox.listCodeContexts(),
      ]) {
        await assert.rejects(call, TimeoutError)
      }
      for (const call of [
        () => sandbox.setTimeout(60_000),
        () => sandbox.getInfo(),
        () => Sandbox.connect(sandbox.sandboxId),
      ]) {
        await assert.rejects(call, SandboxNotFoundError)
      }
      assert.equal((await other.runCode('"alive"')).text, 'alive')
    } finally {
      await other.kill()
    }
  })

  test('that are killed while code runs say so', async () => {
    const sandbox = await create()
    const run = sandbox.runCode('print("begun", flush=True)\nwhile True: pass', { onStdout: () => sandbox.kill() })
    await assert.rejects(run, (error) => {
      assert.ok(error instanceof TimeoutError, error)
      assert.match(error.message, /killed while the request was in progress/)
      return true
    })
  })

  test('ask for the right key', async () => {
    const id = randomUUID()
    for (const apiKey of ['e2b_ffffffffffffffffffffffffffffffffffffffff', 'not a key']) {
      for (const call of [
        () => Sandbox.create({ apiKey }),
        () => Sandbox.connect(id, { apiKey }),
        () => Sandbox.kill(id, { apiKey }),
        () => Sandbox.list({ apiKey }).nextItems(),
      ]) {
        await assert.rejects(call, AuthenticationError)
      }
    }
  })

  test(
    'refuse what this machine cannot do',
    withSandbox(async (sandbox) => {
      for (const [call, reason] of [
        [() => sandbox.pause(), /paused/],
        [() => sandbox.files.read('/etc/passwd'), /run code instead/],
        [() => sandbox.files.list('/'), /run code instead/],
        [() => sandbox.commands.run('true'), /501/],
      ]) {
        await assert.rejects(call, (error) => {
          assert.equal(error.constructor, SandboxError, error)
          assert.match(error.message, reason)
          return true
        })
      }
      assert.equal((await sandbox.runCode('1 + 1')).text, '2')
    }),
  )
})
