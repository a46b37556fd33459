"""
A boss that looks something up with a tool and answers, and a helper that comments, with the official client of OpenAI.

The process stays for all episodes: each line of its input is one, as JSON, and each line of its output is the result.
The client knows nothing of training; an episode's URL and secret stand where a provider's would.
"""
import asyncio
import json
import sys

from openai import AsyncOpenAI, DefaultAsyncHttpxClient

TOOL = {
    "name": "t",
    "parameters": {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]},
}


async def ask(client, agent, messages, stream, **options):
    """The message that an agent answers with, as it goes back into a conversation."""
    if not stream:
        completion = await client.chat.completions.create(model=agent, messages=messages, **options)
        return completion.choices[0].message.model_dump(exclude_none=True)
    message = {"role": "assistant", "content": ""}
    async for chunk in await client.chat.completions.create(model=agent, messages=messages, stream=True, **options):
        for choice in chunk.choices:
            message["content"] += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                calls = message.setdefault("tool_calls", [])
                if call.index == len(calls):
                    calls.append({"id": call.id, "type": "function", "function": {"name": "", "arguments": ""}})
                calls[call.index]["function"]["name"] += call.function.name or ""
                calls[call.index]["function"]["arguments"] += call.function.arguments or ""
    return message


async def play(client, question, stream):
    messages = [{"role": "system", "content": "boss"}, {"role": "user", "content": question}]
    calls = 0
    while True:
        message = await ask(client, "boss", messages, stream, tools=[{"type": "function", "function": TOOL}])
        if not message.get("tool_calls"):
            break
        messages.append(message)
        for call in message["tool_calls"]:
            calls += 1
            n = json.loads(call["function"]["arguments"])["n"]
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": str(2 * n)})
    read = [{"role": "system", "content": "helper"}, {"role": "user", "content": message["content"]}]
    comment = await ask(client, "helper", read, stream)
    return {"answer": message["content"], "comment": comment["content"], "calls": calls}


async def answer(line, shared):
    order = json.loads(line)
    client = AsyncOpenAI(base_url=f"{order['url']}/v1", api_key=order["secret"], http_client=shared)
    try:
        result = {"outcome": await play(client, order["question"], order["stream"])}
    except Exception as error:  # told to the episode, whose failure it is
        result = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps({"id": order["id"], **result}), flush=True)


async def main():
    shared = DefaultAsyncHttpxClient()  # one pool of connections; the secret is each client's own
    loop, running = asyncio.get_running_loop(), set()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        task = asyncio.create_task(answer(line, shared))
        running.add(task)
        task.add_done_callback(running.discard)


asyncio.run(main())
