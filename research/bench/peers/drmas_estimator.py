"""
The paper's own advantage estimator, run from a checkout of its repository. Only the function is taken out of its file, so
that none of the trainer's many dependencies has to be installed.
"""
import ast
import contextlib
import io
import os
import time
from collections import defaultdict

import numpy as np
import torch

from serve import serve, settings

s = settings()
torch.set_num_threads(1)
FILE = 'verl/trainer/ppo/core_algos.py'
NAME = 'compute_grpo_outcome_advantage'
with open(os.path.join(s['checkout'], FILE)) as file:
    tree = ast.parse(file.read())
found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == NAME]
if not found:
    raise SystemExit(f'{FILE} of the checkout has no function {NAME}')
scope = dict(torch=torch, np=np, defaultdict=defaultdict)
exec(compile(ast.Module(body=found, type_ignores=[]), FILE, 'exec'), scope)

groups, episodes = np.array(s['groups'], dtype=object), np.array(s['episodes'], dtype=object)
mask = torch.ones(len(groups), s['tokens'])
rewards = torch.zeros_like(mask)
rewards[:, -1] = torch.tensor(s['rewards'])


def repeat():
    with contextlib.redirect_stdout(io.StringIO()):
        start = time.perf_counter()
        scope[NAME](rewards.clone(), mask, groups, episodes, group_by_agent_id=s['byAgent'])
        seconds = time.perf_counter() - start
    return dict(amount=len(groups), seconds=seconds)


serve(dict(torch=torch.__version__), repeat)
