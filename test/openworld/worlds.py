"""Environments on the real packages, each below its own path of one port: openenv serves them, and writes the port.

The argument is a folder for the package that `openenv import` writes.
"""

import asyncio
import importlib
import os
import random
import socket
import sys
from pathlib import Path

import reasoning_gym
import textarena
import uvicorn
from fastapi import FastAPI
from fastmcp import FastMCP
from openenv.cli.importers import DEFAULT_IMPORTERS, ImporterRegistry
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import Observation, State

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent / "examples/open-env"))
from server import Echo, Seen, Text, World  # noqa: E402


class Frail(Echo):
    """One action that the environment cannot take, and one that ends its server."""

    def step(self, action, timeout_s=None):
        if action.text == "break":
            raise ValueError("the environment is broken")
        if action.text == "die":
            os._exit(3)
        return super().step(action)


class Guess(World):
    """TextArena's GuessTheNumber. Its reset takes the seed."""

    def reset(self, seed=None, episode_id=None):
        self.game = textarena.make("GuessTheNumber-v0")
        self.game.reset(num_players=1, seed=seed)
        self._state = State(episode_id=episode_id)
        return self.seen(self.game.get_observation()[1])

    def step(self, action, timeout_s=None):
        done, _ = self.game.step(action.text)
        self._state.step_count += 1
        reward = (self.game.state.rewards or {}).get(0, 0.0) if done else 0.0
        return self.seen("" if done else self.game.get_observation()[1], reward, done)


class Reasoning(World):
    """Reasoning Gym's sums of two digits, generated from the seed."""

    def reset(self, seed=None, episode_id=None):
        sizes = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}
        self.sums = reasoning_gym.create_dataset("chain_sum", seed=seed, size=1, **sizes)
        self._state = State(episode_id=episode_id)
        return self.seen(self.sums[0]["question"])

    def step(self, action, timeout_s=None):
        return self.seen("", self.sums.score_answer(action.text, self.sums[0]), True)


class Dice(World):
    """Draws without the seed: the environment that does not obey."""

    def reset(self, seed=None, episode_id=None):
        return self.seen(str(random.SystemRandom().random()))

    def step(self, action, timeout_s=None):
        return self.seen("", 0.0, True)


class Shop(MCPEnvironment):
    """Two tools of FastMCP: the price of a fruit, which the seed decides, and the sale, which is paid if it is right."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        tools = FastMCP("shop")

        @tools.tool
        def price(of: str) -> int:
            """The price of a fruit."""
            return self.fig if of == "fig" else 0

        @tools.tool
        def sell(at: str) -> str:
            """Ends the sale."""
            self.sold = at
            return "sold"

        super().__init__(tools)
        self.reset()

    def reset(self, seed=None, episode_id=None, **_):
        self.fig, self.sold = random.Random(seed).randint(1, 2), None
        return Observation(metadata={"question": "fig?"})

    def _step_impl(self, action, timeout_s=None, **_):
        raise TypeError("expected a call of a tool")

    def paid(self, observation):
        if self.sold is not None:
            observation.reward, observation.done = float(self.sold == str(self.fig)), True
        return observation

    def step(self, action, timeout_s=None, **more):
        return self.paid(super().step(action, timeout_s=timeout_s, **more))

    async def step_async(self, action, timeout_s=None, **more):
        return self.paid(await super().step_async(action, timeout_s=timeout_s, **more))

    @property
    def state(self):
        return State()


app = FastAPI()
worlds = {"echo": Echo, "textarena": Guess, "reasoning_gym": Reasoning, "dice": Dice, "frail": Frail}
for name, world in worlds.items():
    app.mount(f"/{name}", create_app(world, Text, Seen, env_name=name, max_concurrent_envs=8))
app.mount("/one", create_app(Echo, Text, Seen, env_name="one"))
app.mount("/mcp-shop", create_app(Shop, CallToolAction, CallToolObservation, env_name="shop", max_concurrent_envs=8))

# What `openenv import` makes of an environment of verifiers. The command itself takes ten seconds to start.
imported = Path(sys.argv[1]) / "addition_env"
if not imported.exists():
    (importer, found), = ImporterRegistry(DEFAULT_IMPORTERS).detect(HERE / "addition", source_type="verifiers")
    importer.generate(source=HERE / "addition", destination=imported, env_name="addition_env", detected=found)
sys.path.insert(0, sys.argv[1])
app.mount("/verifiers", importlib.import_module("addition_env.server.app").app)


async def main():
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    print(listening.getsockname()[1], flush=True)
    await server.serve(sockets=[listening])


asyncio.run(main())
