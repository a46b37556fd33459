"""
`openenv harbor serve` with an environment of Harbor that is NO SANDBOX: its commands are processes of this machine, in
a temporary folder that stands for the root of a container. For one test, whose commands are known.

Harbor takes environments of one's own by their import path, and `openenv` 0.10 has no argument for it: hence `built`.
"""
import asyncio
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import openenv.harbor.rollout as rollout
from harbor.environments.base import BaseEnvironment, ExecResult
from openenv.cli.__main__ import main

FOLDERS = ["app", "logs/agent", "logs/artifacts", "logs/verifier", "solution", "tests", "tmp"]
# A folder of the container in a command, but not in the middle of another path.
ROOTS = re.compile(r"(?<![\w./-])/(?=(?:app|logs|solution|tests|tmp)\b)")


class NoSandbox(BaseEnvironment):
    @staticmethod
    def type():
        return "no-sandbox"

    def _validate_definition(self):
        pass

    def inside(self, path):
        return self.folder / str(path).lstrip("/")

    async def start(self, force_build):
        self.folder = Path(tempfile.mkdtemp(prefix="no-sandbox-"))
        for name in FOLDERS:
            self.inside(name).mkdir(parents=True)

    async def stop(self, delete):
        await self.exec("tmux kill-server")
        shutil.rmtree(self.folder, ignore_errors=True)

    async def upload_file(self, source_path, target_path):
        shutil.copy(source_path, self.inside(target_path))

    async def upload_dir(self, source_dir, target_dir):
        shutil.copytree(source_dir, self.inside(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path, target_path):
        shutil.copy(self.inside(source_path), target_path)

    async def download_dir(self, source_dir, target_dir):
        shutil.copytree(self.inside(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        if "install" in command:  # the agent installs what it misses
            return ExecResult(stdout="", stderr="nothing is installed outside a sandbox", return_code=1)
        tools = str(Path(sys.executable).parent)  # asciinema
        child = await asyncio.create_subprocess_exec(
            *["bash", "-c", ROOTS.sub(f"{self.folder}/", command)],
            cwd=self.inside(cwd or "/app"),
            env={
                **{"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(self.folder), "LANG": "C.UTF-8"},
                **{"TMUX_TMPDIR": str(self.folder), **(self._merge_env(env) or {})},
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(child.communicate(), timeout_sec)
        return ExecResult(stdout=out.decode(), stderr=err.decode(), return_code=child.returncode)


build = rollout.build_trial_config


def built(**options):
    config = build(**options)
    own = {"type": None, "import_path": "no_sandbox:NoSandbox"}
    return config.model_copy(update={"environment": config.environment.model_copy(update=own)})


if __name__ == "__main__":
    rollout.build_trial_config = built
    main()
