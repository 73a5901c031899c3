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

// Sandboxes for tests.

import { Sandbox } from '@e2b/code-interpreter'

// withSandbox returns a test that has a sandbox of its own until it ends.
export function withSandbox(test, options = {}) {
  return async () => {
    const sandbox = await create(options)
    try {
      await test(sandbox)
    } finally {
      await sandbox.kill()
    }
  }
}

// create makes a sandbox that ends soon if its test forgets it.
export function create(options = {}) {
  return Sandbox.create({ timeoutMs: 60_000, ...options })
}

// stdout is all that a run printed.
export function stdout(execution) {
  return execution.logs.stdout.join('')
}

// until waits for a condition that comes true by itself.
export async function until(condition) {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20))
}
