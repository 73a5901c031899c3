# Copyright 2026 The Caddy Code Interpreter Authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

"""The official Python client: what it has to get right, in each of its forms.

Reports each test as one line of JSON, for the Go test that starts this."""

import asyncio
import concurrent.futures
import json
import os
import unittest
import uuid

import httpx
import openai
from openai.lib.streaming.chat import ChatCompletionStreamState

BASE_URL = os.environ["BASE_URL"]
LOCKED_URL = os.environ["LOCKED_URL"]
LOCKED_KEY = os.environ["LOCKED_KEY"]
SILENCE = int(os.environ["SILENT_SECONDS"])
SCRIPTED_ERROR = "The script asked for this error"

TOOL = {"type": "code_interpreter"}
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def user(text):
    return {"role": "user", "content": text}


def body(text="", *, messages=None, tools=(), session=None):
    fields = {"model": "scripted", "messages": messages or [user(text)], "tools": [TOOL, *tools]}
    if session:
        fields["metadata"] = {"session_id": session}
    return fields


class Answer:
    """What came of a request, whichever way it was made."""

    def __init__(self, completion, executed, seen):
        (choice,) = completion.choices
        self.message = choice.message
        self.content = choice.message.content
        self.finish = choice.finish_reason
        self.calls = choice.message.tool_calls or []
        self.usage = completion.usage
        self.executed = executed
        self.seen = seen  # all that the client got to know, apart from executed_tools


def whole(completion):
    executed = getattr(completion.choices[0].message, "executed_tools", [])
    seen = json.loads(completion.model_dump_json())
    seen["choices"][0]["message"].pop("executed_tools", None)
    return Answer(completion, executed, json.dumps(seen))


class Stream:
    """Puts the chunks of a stream together, as the client's own helper does."""

    def __init__(self):
        self.state = ChatCompletionStreamState()
        self.executed = {}
        self.seen = []

    def add(self, chunk):
        raw = json.loads(chunk.model_dump_json())
        for choice in raw["choices"]:
            for entry in choice["delta"].pop("executed_tools", []):
                self.executed[entry["index"]] = entry  # the second time with its output
        self.seen.append(json.dumps(raw))
        self.state.handle_chunk(chunk)

    def answer(self):
        return Answer(self.state.get_final_completion(), [e for _, e in sorted(self.executed.items())], "".join(self.seen))


def options(key, base):
    return {"base_url": base, "api_key": key, "max_retries": 0, "timeout": SILENCE + 60}


def in_json(fields, key="sk-python", base=BASE_URL):
    with openai.OpenAI(**options(key, base)) as client:
        return whole(client.chat.completions.create(**fields))


def in_stream(fields, key="sk-python", base=BASE_URL):
    stream = Stream()
    with openai.OpenAI(**options(key, base)) as client:
        with client.chat.completions.create(**fields, stream=True, stream_options={"include_usage": True}) as chunks:
            for chunk in chunks:
                stream.add(chunk)
    return stream.answer()


def in_async_stream(fields, key="sk-python", base=BASE_URL):
    async def ask():
        stream = Stream()
        async with openai.AsyncOpenAI(**options(key, base)) as client:
            chunks = await client.chat.completions.create(**fields, stream=True, stream_options={"include_usage": True})
            async for chunk in chunks:
                stream.add(chunk)
        return stream.answer()

    return asyncio.run(ask())


class Scenarios:
    """What holds in each form. ask is one of the functions above."""

    def answers(self, answer, text):
        self.assertEqual(answer.content, text)
        self.assertEqual(answer.finish, "stop")
        self.assertEqual(list(answer.calls), [])
        self.assertNotIn("run_python", answer.seen)
        self.assertGreater(answer.usage.prompt_tokens, 0)
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)

    def test_code_runs(self):
        answer = self.ask(body("Run this: print(6*7)"))
        self.answers(answer, "The tool returned: 42")
        (entry,) = answer.executed
        self.assertEqual((entry["index"], entry["output"], entry["arguments"]), (0, "42", '{"code":"print(6*7)"}'))

    def test_several_rounds(self):
        answer = self.ask(body("[rounds 2] Run this: print(1)"))
        self.answers(answer, "The tool returned: 1\nThe tool returned: 1")
        self.assertEqual([e["index"] for e in answer.executed], [0, 1])

    def test_text_without_the_tool(self):
        answer = self.ask(body("Hello"))
        self.assertRegex(answer.content, "^Hello from the scripted model")
        self.assertEqual(list(answer.executed), [])

    def test_a_session_keeps_its_variables(self):
        session = str(uuid.uuid4())
        self.ask(body("Run this: x = 42", session=session))
        self.answers(self.ask(body("Run this: print(x)", session=session)), "The tool returned: 42")
        self.assertIn("NameError", self.ask(body("Run this: print(x)", session=str(uuid.uuid4()))).content)
        self.assertIn("NameError", self.ask(body("Run this: print(x)", session=session), key="sk-someone-else").content)

    def test_a_mixed_turn(self):
        question = user("[both] Run this: print(6*7)")
        first = self.ask(body(messages=[question], tools=[WEATHER]))
        self.assertEqual(first.finish, "tool_calls")
        (call,) = first.calls
        self.assertEqual((call.function.name, json.loads(call.function.arguments)), ("weather", {"city": "example"}))
        self.assertNotIn("run_python", first.seen)
        result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
        for message in (first.message, first.message.model_dump(), first.message.model_dump(exclude_unset=True)):
            second = self.ask(body(messages=[question, message, result], tools=[WEATHER]))
            self.answers(second, "The tool returned: 42\nThe tool returned: sunny")

    def test_an_error_before_the_answer(self):
        for status, kind in {400: openai.BadRequestError, 429: openai.RateLimitError, 500: openai.InternalServerError}.items():
            with self.assertRaisesRegex(kind, SCRIPTED_ERROR) as raised:
                self.ask(body(f"[status {status}] Run this: print(1)"))
            self.assertEqual(raised.exception.status_code, status)

    def test_a_key_that_the_upstream_refuses(self):
        with self.assertRaises(openai.AuthenticationError) as raised:
            self.ask(body("Run this: print(1)"), base=LOCKED_URL)
        self.assertEqual(raised.exception.code, "invalid_api_key")
        self.answers(self.ask(body("Run this: print(1)"), key=LOCKED_KEY, base=LOCKED_URL), "The tool returned: 1")

    def test_a_request_that_the_gateway_refuses(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            self.ask({**body("Run this: print(1)"), "metadata": {"session_id": ""}})
        self.assertEqual((raised.exception.type, raised.exception.param), ("invalid_request_error", "metadata.session_id"))

    def test_an_error_in_the_answer(self):
        for knob in ("[fail-stream]", "[fail-stream after]"):
            with self.assertRaisesRegex(openai.APIError, SCRIPTED_ERROR):
                self.ask(body(f"{knob} Run this: print(1)"))

    def test_a_broken_connection(self):
        for knob in ("[cut]", "[cut after]"):
            # A stream that ends before its end is httpx's to tell.
            with self.assertRaises((openai.APIError, httpx.RemoteProtocolError)) as raised:
                self.ask(body(f"{knob} Run this: print(1)"))
            self.assertNotIsInstance(raised.exception.__cause__, httpx.ConnectError)

    def test_silence_while_code_runs(self):
        answer = self.ask(body(f'Run this: import time; time.sleep({SILENCE}); print("awake")'))
        self.answers(answer, "The tool returned: awake")

    def test_silence_of_the_model(self):
        self.answers(self.ask(body(f'[silent {SILENCE} after] Run this: print("awake")')), "The tool returned: awake")


class JSON(Scenarios, unittest.TestCase):
    ask = staticmethod(in_json)


class Streamed(Scenarios, unittest.TestCase):
    ask = staticmethod(in_stream)


class AsyncStreamed(Scenarios, unittest.TestCase):
    ask = staticmethod(in_async_stream)


def run(test):
    result = unittest.TestResult()
    test.run(result)
    problems = [text for _, text in result.errors + result.failures]
    return {
        "name": f"{type(test).__name__}: {test._testMethodName.removeprefix('test_').replace('_', ' ')}",
        "passed": result.wasSuccessful(),
        "skipped": bool(result.skipped),
        "error": "\n".join(problems),
    }


def main():
    print(json.dumps({"output": f"openai {openai.__version__}"}), flush=True)
    load = unittest.defaultTestLoader.loadTestsFromTestCase
    tests = [test for case in (JSON, Streamed, AsyncStreamed) for test in load(case)]
    # Together, as most of the time is silence.
    with concurrent.futures.ThreadPoolExecutor(len(tests)) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, test) for test in tests]):
            print(json.dumps(done.result()), flush=True)


if __name__ == "__main__":
    main()
