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

// Reports each test as one line of JSON, for the Go test that starts the clients.

export default async function* report(source) {
  for await (const { type, data } of source) {
    if (type === 'test:stderr' || type === 'test:stdout') yield `${JSON.stringify({ output: data.message })}\n`
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const error = data.details?.error
    yield `${JSON.stringify({
      name: data.name,
      passed: type === 'test:pass',
      skipped: data.skip !== undefined,
      suite: data.details?.type === 'suite',
      error: error && String(error.cause?.stack ?? error.cause ?? error.stack ?? error),
    })}\n`
  }
}
