"""Talks to termsmith's proxy with the official clients, streamed and not: openai, anthropic and google-genai.

Usage: dialects.py URL. The server replies by the last message: it calls tools, says a text after their results, and
refuses some words. It counts the requests that it gets (`GET /count`)."""

import json
import sys
import urllib.request

import anthropic
import openai
from google import genai
from google.genai import errors, types

URL = sys.argv[1]
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
# What the server says, with the arguments as the model wrote them.
SAID, THOUGHT, LAST = "I look.", "Hm.", "Done: 2 results."
ARGUMENTS = ['{"z": 1, "command": "ls"}', '{"command": "pwd"}']


def count():
    return int(urllib.request.urlopen(URL + "/count").read())


def refused(error, call):
    """Whether `call` raises `error` after one request."""
    before = count()
    try:
        call()
    except error as raised:
        assert count() == before + 1, f"{count() - before} requests: {raised}"
        return raised
    raise AssertionError(f"no {error.__name__}")


def equal(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"


def chat():
    client = openai.OpenAI(base_url=URL + "/v1", api_key="none")
    tools = [{"type": "function", "function": {"name": "sh", "description": "Runs.", "parameters": SCHEMA}}]
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PNG}}

    def ask(text, stream, more=()):
        first = {"role": "user", "content": [{"type": "text", "text": text}, image]}
        args = {"model": "m", "messages": [first, *more], "tools": tools}
        if not stream:
            reply = client.chat.completions.create(**args)
            return reply.choices[0].message, reply.choices[0].finish_reason, reply.usage
        with client.chat.completions.stream(**args, stream_options={"include_usage": True}) as events:
            for _ in events:
                pass
            reply = events.get_final_completion()
            return reply.choices[0].message, reply.choices[0].finish_reason, reply.usage

    for stream, text in [(False, "hi"), (True, "hi"), (True, "slow")]:
        message, finish, usage = ask(text, stream)
        equal((message.content, finish), (SAID, "tool_calls"))
        equal([call.function.arguments for call in message.tool_calls], ARGUMENTS)
        equal((usage.prompt_tokens, usage.completion_tokens), (7, 3))
        sent = message.model_dump(exclude_unset=True)
        if not stream:
            equal(sent["reasoning_content"], THOUGHT)
        results = [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in message.tool_calls]
        message, finish, _ = ask("hi", stream, [sent, *results])
        equal((message.content, finish), (LAST, "stop"))
    refused(openai.PermissionDeniedError, lambda: ask("limit", True))
    equal(refused(openai.BadRequestError, lambda: ask("context", False)).code, "context_length_exceeded")
    refused(openai.APIError, lambda: ask("slow limit", True))
    equal([model.id for model in client.models.list()], ["m"])
    equal(client.models.retrieve("m").id, "m")


def responses():
    client = openai.OpenAI(base_url=URL + "/v1", api_key="none")
    tools = [{"type": "function", "name": "sh", "description": "Runs.", "parameters": SCHEMA, "strict": False}]
    image = {"type": "input_image", "image_url": "data:image/png;base64," + PNG, "detail": "auto"}

    def ask(text, stream, more=()):
        first = {"role": "user", "content": [{"type": "input_text", "text": text}, image]}
        args = {"model": "m", "input": [first, *more], "tools": tools, "store": False, "instructions": "Be brief."}
        if not stream:
            return client.responses.create(**args)
        with client.responses.stream(**args) as events:
            kinds = [event.type for event in events]
            equal((kinds[0], kinds[-1]), ("response.created", "response.completed"))
            return events.get_final_response()

    for stream, text in [(False, "hi"), (True, "hi"), (True, "slow")]:
        reply = ask(text, stream)
        equal((reply.status, reply.output_text), ("completed", SAID))
        equal(reply.output[0].summary[0].text, THOUGHT)
        calls = [item for item in reply.output if item.type == "function_call"]
        equal([call.arguments for call in calls], ARGUMENTS)
        equal((reply.usage.input_tokens, reply.usage.output_tokens), (7, 3))
        results = [{"type": "function_call_output", "call_id": call.call_id, "output": "ok"} for call in calls]
        sent = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in reply.output]
        equal(ask("hi", stream, [*sent, *results]).output_text, LAST)
    refused(openai.BadRequestError, lambda: ask("limit", True))
    equal(refused(openai.BadRequestError, lambda: ask("context", False)).code, "context_length_exceeded")
    failed = [event for event in client.responses.create(model="m", input="context", stream=True)][-1]
    equal((failed.type, failed.response.error.code), ("response.failed", "context_length_exceeded"))


def messages():
    client = anthropic.Anthropic(base_url=URL, api_key="none")
    tools = [{"name": "sh", "description": "Runs.", "input_schema": SCHEMA}]
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}

    def ask(text, stream, more=()):
        first = {"role": "user", "content": [{"type": "text", "text": text}, image]}
        args = {"model": "m", "max_tokens": 2000, "messages": [first, *more], "tools": tools, "system": "Be brief."}
        args["thinking"] = {"type": "enabled", "budget_tokens": 1024}
        if not stream:
            return client.messages.create(**args)
        with client.messages.stream(**args) as events:
            kinds = [event.type for event in events]
            equal((kinds[0], kinds[-1]), ("message_start", "message_stop"))
            return events.get_final_message()

    for stream, text in [(False, "hi"), (True, "hi"), (True, "slow")]:
        reply = ask(text, stream)
        thinking, said, *calls = reply.content
        equal((thinking.thinking, said.text, reply.stop_reason), (THOUGHT, SAID, "tool_use"))
        equal([json.dumps(call.input) for call in calls], ARGUMENTS)
        equal((reply.usage.input_tokens, reply.usage.output_tokens), (7, 3))
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": "ok"} for call in calls]
        sent = [{"role": "assistant", "content": reply.content}, {"role": "user", "content": results}]
        reply = ask("hi", stream, sent)
        equal((reply.content[-1].text, reply.stop_reason), (LAST, "end_turn"))
    refused(anthropic.PermissionDeniedError, lambda: ask("limit", True))
    assert "prompt is too long" in str(refused(anthropic.BadRequestError, lambda: ask("context", True)))
    refused(anthropic.APIStatusError, lambda: ask("slow limit", True))
    counted = client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "hi"}])
    assert counted.input_tokens > 0
    equal([model.id for model in client.models.list()], ["m"])


def gemini():
    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=URL))
    declared = types.FunctionDeclaration(name="sh", description="Runs.", parameters=types.Schema(
        type="OBJECT", properties={"command": types.Schema(type="STRING")}))
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])],
        system_instruction="Be brief.",
        thinking_config=types.ThinkingConfig(include_thoughts=True),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )

    def ask(text, stream, more=()):
        first = types.UserContent(parts=[types.Part(text=text)])
        args = {"model": "m", "contents": [first, *more], "config": config}
        if not stream:
            reply = client.models.generate_content(**args)
            return reply.candidates[0].content.parts, reply.candidates[0].finish_reason, reply.usage_metadata
        parts, finish, usage = [], None, None
        for reply in client.models.generate_content_stream(**args):
            if reply.candidates:
                parts += reply.candidates[0].content.parts
                finish = reply.candidates[0].finish_reason or finish
                usage = reply.usage_metadata or usage
        return parts, finish, usage

    for stream, text in [(False, "hi"), (True, "hi"), (True, "slow")]:
        parts, finish, usage = ask(text, stream)
        thought, said, *calls = parts
        equal((thought.thought, thought.text, said.text, finish.name), (True, THOUGHT, SAID, "STOP"))
        equal([json.dumps(part.function_call.args) for part in calls], ARGUMENTS)
        equal((usage.prompt_token_count, usage.candidates_token_count), (7, 3))
        results = [types.Part.from_function_response(name="sh", response={"output": "ok"}) for _ in calls]
        parts, _, _ = ask("hi", stream, [types.ModelContent(parts=parts), types.UserContent(parts=results)])
        equal(parts[-1].text, LAST)
    equal(refused(errors.ClientError, lambda: ask("limit", True)).code, 403)
    equal(refused(errors.ClientError, lambda: ask("context", False)).code, 400)
    assert client.models.count_tokens(model="m", contents="hi").total_tokens > 0


for dialect in (chat, responses, messages, gemini):
    dialect()
    print(dialect.__name__, "ok")
