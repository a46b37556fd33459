"""An environment on the package `openenv` (pip install openenv). `python server.py` serves it on port 8000.

It shows a letter that follows from the seed, and pays for an answer that begins with this letter.
"""

import random

from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field


class Text(Action):
    """What the agent says."""

    text: str = Field(..., max_length=1000)


class Seen(Observation):
    text: str = ""


class World(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._state = State()

    @property
    def state(self):
        return self._state

    def seen(self, text, reward=None, done=False):
        return Seen(text=text, reward=reward, done=done)


class Echo(World):
    def reset(self, seed=None, episode_id=None):
        self._state = State(episode_id=episode_id)
        self.letter = random.Random(seed).choice("ab")
        return self.seen(self.letter)

    def step(self, action, timeout_s=None):
        self._state.step_count += 1
        return self.seen(action.text, float(action.text[:1] == self.letter), True)


app = create_app(Echo, Text, Seen, env_name="echo", max_concurrent_envs=16)

if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, port=8000, log_level="warning")
