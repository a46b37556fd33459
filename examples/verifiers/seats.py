"""Plays episodes of a multi-agent environment of verifiers (pip install "verifiers>=0.4"), each seat with its own model.

The argument is the environment's configuration as JSON. Each line on standard input is an episode, {"id", "task", "key",
"seats": {seat: address}}; its line on standard output has {"id", "rewards": {seat: reward}} or {"id", "error"}.
"""

import asyncio
import copy
import json
import os
import sys

import verifiers.v1 as vf
from openai import AsyncOpenAI
from verifiers.v1.dialects.chat import message_to_wire

__all__ = ["Chat"]


class Chat(vf.Harness[vf.HarnessConfig]):
    """One call of the seat's model for each turn, in this process: verifiers' own harnesses start a program for each."""

    APPENDS_SYSTEM_PROMPT = SUPPORTS_RESUME = True
    EXECUTES_CODE = NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data, **_):
        instructions, prompt = self.resolve_prompt(data)
        messages = [{"role": "system", "content": instructions}] if instructions else []
        if isinstance(prompt, str):
            messages.append({"role": "user", "content": prompt})
        else:
            messages += [message_to_wire(message) for message in prompt or []]
        async with AsyncOpenAI(base_url=endpoint, api_key=secret, max_retries=0, timeout=600) as client:
            await client.chat.completions.create(model=ctx.model, messages=messages)
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


def environment(config, episode):
    """The environment with the addresses of an episode's seats. The key travels in a variable of this process."""
    config = copy.deepcopy(config)
    variable = f"SEATS_{episode['id']}"
    os.environ[variable] = episode["key"]
    for seat, address in episode["seats"].items():
        config[seat] = {
            **config.get(seat, {}),
            "model": seat,
            "client": {"type": "eval", "base_url": f"{address}/v1", "api_key_var": variable},
            "harness": {"id": "seats"},
            "runtime": {"type": "subprocess"},
        }
    return vf.load_environment(vf.resolve_env_config(config))


async def play(config, tasks, episode):
    try:
        env = environment(config, episode)
        context = vf.ModelContext(model="none", client=vf.EvalClientConfig(base_url="http://127.0.0.1:9"))
        async with env.serving():
            played = await env.run_episode(tasks[episode["task"]], context)
        errors = [*played.errors, *(error for trace in played.traces for error in trace.errors)]
        result = {"error": str(errors[0])} if errors else {"rewards": {t.agent.name: t.reward for t in played.traces}}
    except Exception as error:  # the episode's failure, not the process's
        result = {"error": f"{type(error).__name__}: {error}"}
    finally:
        os.environ.pop(f"SEATS_{episode['id']}", None)
    print(json.dumps({"id": episode["id"], **result}), flush=True)


async def main():
    config = json.loads(sys.argv[1])
    tasks = list(vf.load_taskset(vf.resolve_env_config(config).taskset))
    running = set()
    while line := await asyncio.to_thread(sys.stdin.readline):
        running.add(task := asyncio.create_task(play(config, tasks, json.loads(line))))
        task.add_done_callback(running.discard)


if __name__ == "__main__":
    asyncio.run(main())
