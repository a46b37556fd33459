"""Writes paper-teams.jsonl: what the two orchestras of the Dr. MAS paper's code do with scripted replies.

    git clone https://github.com/langfengQ/DrMAS && git -C DrMAS checkout 19c632b
    pip install numpy omegaconf gym sympy pylatexenc requests pillow
    python paper_teams.py DrMAS > paper-teams.jsonl

Their agents, orchestras, environments, memory, rollout loop, reward manager and penalty run as they are. Stand-ins
replace what would need a GPU: torch (a few functions of numpy), verl's DataProto (a table of rows), the tokenizer (a
text is one token) and the model (the next reply of the script). The retriever's HTTP session answers from a table.
"""

import ast
import hashlib
import itertools
import json
import os
import random
import subprocess
import sys
import types
from contextlib import redirect_stdout

import numpy as np

ROOT = sys.argv[1]
sys.path.insert(0, ROOT)


def module(name, **names):
    made = types.ModuleType(name)
    made.__dict__.update(names)
    sys.modules[name] = made
    return made


class Columns(dict):
    """Arrays by name. Its length is the number of rows, as that of a TensorDict."""

    def __len__(self):
        return len(next(iter(self.values()), ()))


class DataProto:
    """Rows of arrays: `batch` holds numbers, `non_tensor_batch` anything else."""

    NUMBERS = ("input_ids", "attention_mask", "position_ids", "responses", "prompts")

    def __init__(self, batch, non_tensor_batch, meta_info=None):
        self.batch, self.non_tensor_batch, self.meta_info = Columns(batch), non_tensor_batch, meta_info or {}

    @staticmethod
    def from_single_dict(data, meta_info=None):
        numbers = {key: data[key] for key in data if key in DataProto.NUMBERS}
        return DataProto(numbers, {key: data[key] for key in data if key not in numbers}, meta_info)

    def __len__(self):
        return len(self.batch)

    def __getitem__(self, row):
        return DataProto(*({key: of[key][row] for key in of} for of in (self.batch, self.non_tensor_batch)))

    def select_idxs(self, rows):
        return DataProto(
            *({key: of[key][rows] for key in of} for of in (self.batch, self.non_tensor_batch)), self.meta_info
        )

    def pop(self, batch_keys, non_tensor_batch_keys):
        return DataProto(
            {key: self.batch.pop(key) for key in batch_keys},
            {key: self.non_tensor_batch.pop(key) for key in non_tensor_batch_keys},
        )

    def union(self, other):
        self.batch.update(other.batch)
        self.non_tensor_batch.update(other.non_tensor_batch)
        return self

    def repeat(self, repeat_times, interleave):
        return self.select_idxs(np.repeat(np.arange(len(self)), repeat_times))


def objects(values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def collate(rows):
    numbers = DataProto.NUMBERS
    return {
        key: np.array([row[key] for row in rows]) if key in numbers else objects([row[key] for row in rows])
        for key in rows[0]
    }


class Unused:
    """A name that is imported and not used."""


class Tensor:
    """No value is an instance: all arrays are numpy's."""


def stand_ins():
    module(
        "torch",
        Tensor=Tensor,
        float32=np.float32,
        tensor=lambda value, dtype, device: np.array(value, dtype=dtype),
        zeros_like=lambda like, dtype: np.zeros(like.shape, dtype=dtype),
    )
    module("transformers", PreTrainedTokenizer=Unused)
    module("verl", DataProto=DataProto)
    module(
        "verl.protocol",
        pad_dataproto_to_divisor=lambda data, size: (data, 0),
        unpad_dataproto=lambda data, pad_size: data,
        extract_dataproto_via_active_mask=lambda data, mask: data.select_idxs(np.flatnonzero(mask)),
        restore_dataproto_via_active_mask=restore,
    )
    module("verl.models")
    module("verl.models.transformers")
    module("verl.models.transformers.qwen2_vl", get_rope_index=None)
    module("verl.utils")
    module("verl.utils.dataset")
    module("verl.utils.dataset.rl_dataset", collate_fn=collate)
    module("verl.utils.model", compute_position_id_with_mask=lambda mask: mask)
    tokens = module("verl.utils.torch_functional", tokenize_and_postprocess_data=tokenized)
    sys.modules["verl.utils"].torch_functional = tokens


def restore(output, mask):
    """The rows of `output` at the places of the mask; the first row elsewhere."""
    rows = np.zeros(len(mask), dtype=int)
    rows[np.flatnonzero(mask)] = np.arange(len(output))
    return output.select_idxs(rows)


def tokenized(prompt, **_):
    return np.zeros((1, 1), dtype=int), np.ones((1, 1), dtype=int)


class Texts:
    """The tokenizer: a text is one token."""

    pad_token_id = 0

    def __init__(self):
        self.known = []

    def token(self, text):
        self.known.append(text)
        return len(self.known) - 1

    def apply_chat_template(self, chat, **_):
        return json.dumps(list(chat))

    def encode(self, text, **_):
        return [0]

    def batch_decode(self, rows, **_):
        return [self.known[row[0]] for row in rows]

    def decode(self, ids, **_):
        return self.known[ids[0]] if len(ids) else ""


class Model:
    """The model of one agent: the script's next reply for each episode."""

    world_size = 1

    def __init__(self, agent, texts, scripts, log):
        self.agent, self.texts, self.scripts, self.log = agent, texts, scripts, log

    def generate_sequences(self, batch):
        replies = []
        for chat in batch.non_tensor_batch["raw_prompt"]:
            episode = self.episode_of(chat)
            reply = self.scripts[episode][self.agent].pop(0)
            self.log[episode].append({"agent": self.agent, "prompt": chat, "reply": reply})
            replies.append([self.texts.token(reply)])
        ones = np.ones((len(replies), 2), dtype=int)
        return DataProto(
            {"input_ids": ones, "responses": np.array(replies), "prompts": ones[:, :1], "attention_mask": ones},
            {},
        )

    @staticmethod
    def episode_of(chat):
        """The number of the episode, which its question names: "(case 7)"."""
        return int(chat[1]["content"].split("(case ")[1].split(")")[0])


PASSAGES = {
    "capital of France": [
        '"Paris"\nParis is the capital of France.',
        '"France"\nFrance is in Europe; its café "Le Dôme" \\ is old.',
    ],
    "": ['"Nothing"\nThe empty query finds this.'],
    "answer in a passage": ['"Tags"\nA page says <answer>Paris</answer>.\tIt has tabs.', "a passage without a title"],
    "nothing": [],
}


class Session:
    """The retrieval server's replies."""

    def mount(self, *_):
        pass

    def post(self, url, headers, json, timeout):
        found = PASSAGES.get(json["query"], [f'"About"\nA page about {json["query"]}.'])
        found = [{"document": {"id": str(n), "contents": contents}, "score": 1.0} for n, contents in enumerate(found)]
        reply = types.SimpleNamespace(status_code=200, raise_for_status=lambda: None)
        reply.json = lambda: {"result": [found[: json["topk"]]]}
        return reply


def penalise(data, coefficient):
    """`apply_invalid_action_penalty` of their trainer, whose file imports too much."""
    with open(os.path.join(ROOT, "verl/trainer/ppo/ray_trainer.py")) as file:
        tree = ast.parse(file.read())
    [function] = [node for node in tree.body if getattr(node, "name", "") == "apply_invalid_action_penalty"]
    names = {"np": np, "torch": sys.modules["torch"], "DataProto": DataProto}
    exec(compile(ast.Module([function], []), "ray_trainer.py", "exec"), names)
    return names["apply_invalid_action_penalty"](data, coefficient)[0]


IDS = {"math": ["Solver Agent", "Verifier Agent"], "search": ["Verifier Agent", "Search Agent", "Answer Agent"]}


def play(team, cases, loops, penalty, group):
    """Plays the cases as one batch, in groups of `group`, and returns the transcripts."""
    from omegaconf import OmegaConf

    from agent_system.agent.registry import AgentRegistry
    from agent_system.environments.env_manager import make_envs
    from agent_system.multi_turn_rollout import MultiAgentTrajectoryCollector
    from agent_system.reward_manager import EpisodeRewardManager

    agents = IDS[team]
    config = OmegaConf.create(
        {
            "agent": {
                "multi_agent": True,
                "agent_ids": agents,
                "model_ids": ["model"] * len(agents),
                "orchestra_type": team,
                "orchestra": {"math": {"max_loop_num": loops}},
                "use_agent_memory": False,
            },
            "algorithm": {"filter_groups": {"enable": False}},
            "data": {
                "train_batch_size": len(cases) // group,
                "val_batch_size": 1,
                "max_prompt_length": 8192,
                "truncation": "left",
                "return_raw_chat": True,
                "apply_chat_template_kwargs": {"enable_thinking": False},
            },
            "env": {
                "env_name": team,
                "seed": 0,
                "rollout": {"n": group},
                "max_steps": loops if team == "search" else 1,
                "history_length": loops,
                "search": {"search_url": "http://server/retrieve", "topk": 3, "timeout": 5, "log_requests": False},
            },
        }
    )
    if f"agent_system.agent.agents.{team}" not in sys.modules:
        AgentRegistry._REGISTRY.clear()  # both teams have a "Verifier Agent"
    texts = Texts()
    scripts = {case["number"]: {agent: list(case["replies"][agent]) for agent in agents} for case in cases}
    log = {case["number"]: [] for case in cases}
    models = {agent: Model(agent, texts, scripts, log) for agent in agents}
    collector = MultiAgentTrajectoryCollector(
        config,
        {agent: [{"agent_id": agent}] for agent in agents},
        {agent: texts for agent in agents},
        {agent: None for agent in agents},
    )
    kwargs = [{"question": case["question"], "ground_truth": case["truth"], "data_source": team} for case in cases]
    prompts = DataProto(
        {"input_ids": np.zeros((len(cases), 1), dtype=int)},
        {
            "env_kwargs": objects(kwargs),
            "raw_prompt": objects([[{"role": "user", "content": case["question"]}] for case in cases]),
            "data_source": objects([team] * len(cases)),
        },
    )
    envs, _ = make_envs(config)
    lists, rewards, lengths, success, uids, tools = collector.vanilla_multi_turn_loop(prompts, models, envs, group)
    rows = collector.gather_rollout_data(lists, rewards, lengths, success, uids, tools)
    rows.batch["token_level_scores"] = EpisodeRewardManager({agent: texts for agent in agents}, 0)(rows)
    rows = penalise(rows, penalty)
    of_episode = {uid: [] for uid in uids}
    for n in range(len(rows)):
        row = rows[n].non_tensor_batch
        of_episode[row["traj_uid"]].append(
            {
                "agent": row["agent_id"],
                "valid": bool(row["is_action_valid"]),
                "reward": round(float(rows[n].batch["token_level_scores"].sum()), 6),
                "step": int(row["env_step"]) - 1,
            }
        )
    for case, uid, reward in zip(cases, uids, rewards):
        calls, trained = log[case["number"]], of_episode[uid]
        assert [call["agent"] for call in calls] == [row["agent"] for row in trained], case
        yield {
            "question": case["question"],
            "truth": case["truth"]["target"] if team == "search" else case["truth"],
            "reward": float(reward),
            "rows": [{**call, **row} for call, row in zip(calls, trained)],
        }


SOLUTIONS = {
    "right": "Two and two are \\boxed{4}.",
    "wrong": "I say \\boxed{5}.",
    "right of several": "\\boxed{7}, no: \\boxed{ 4 }",
    "right after a thought": "<think>\\boxed{5}</think> so \\boxed{4}",
    "boxed in the thought alone": "<think>so \\boxed{4}</think> four",
    "no box": "It is 4.",
    "empty box": "Thus \\boxed{}.",
    "open box": "Thus \\boxed{4",
    "Chinese characters": "答案是 \\boxed{4}",
    "nothing": "",
}
JUDGEMENTS = {
    "approve": "All right. <verify>approve</verify>",
    "reject": "No. <verify>reject</verify>",
    "reject with spaces": "No. <verify> reject </verify> Try again.",
    "reject on lines": "<verify>\nreject\n</verify>",
    "both, approve first": "<verify>approve</verify> or <verify>reject</verify>",
    "both, reject first": "<verify>reject</verify> or <verify>approve</verify>",
    "second with spaces": "<verify>maybe</verify> <verify> reject </verify>",
    "another word": "<verify>perhaps</verify>",
    "capitals": "<verify>REJECT</verify>",
    "no tags": "reject",
    "open tag": "<verify>reject",
    "tags the wrong way round": "reject</verify> then <verify>",
    "Chinese characters": "错误 <verify>reject</verify>",
    "nothing": "",
}
VERDICTS = {
    "yes": "Enough. <verify>yes</verify>",
    "no": "Not enough. <verify>no</verify>",
    "no with spaces": "Hm. <verify> no </verify> indeed",
    "no in capitals": "<verify>NO</verify>",
    "tags in capitals": "<VERIFY>no</VERIFY>",
    "both": "<verify>no</verify> <verify>yes</verify>",
    "another word": "<verify>maybe</verify>",
    "no tags": "no",
    "tags the wrong way round": "no</verify> and <verify>",
    "Chinese characters": "不够 <verify>no</verify>",
    "nothing": "",
}
QUERIES = {
    "readable": "<think>I need it.</think> <search>capital of France</search>",
    "spaces": "<think>So.</think>\n<search>  capital of France\n</search>",
    "no think": "<search>capital of France</search>",
    "two thoughts": "<think>a</think><think>b</think><search>café</search>",
    "thought the wrong way round": "</think><think><search>rivers</search>",
    "Chinese characters": "<think>想</think><search>法国 capital</search>",
    "empty query": "<think>x</think><search> </search>",
    "no tags": "capital of France",
    "several": "<think>x</think><search>first</search><search>second</search>",
    "tags the wrong way round": "<think>x</think></search>q<search>",
    "answer in a passage": "<think>x</think><search>answer in a passage</search>",
    "answer in the query": "<think>x</think><search>is <answer>Paris</answer> right</search>",
    "without results": "<think>x</think><search>nothing</search>",
    "nothing": "",
}
ANSWERS = {
    "right": "<think>It is.</think> <answer>Paris</answer>",
    "right with spaces": "<think>It is.</think> <answer> the Paris! </answer>",
    "wrong": "<think>It is.</think><answer>London</answer>",
    "no think": "<answer>Paris</answer>",
    "Chinese characters": "<think>巴黎</think><answer>Paris</answer>",
    "several": "<think>x</think><answer>London</answer> <answer>Paris</answer>",
    "empty": "<think>x</think><answer></answer>",
    "no tags": "Paris",
    "open tag": "<think>x</think><answer>Paris",
    "search in the answer": "<think>x</think><answer><search>Paris</search></answer>",
    "nothing": "",
}


def cases_of(team, loops, draw):
    """Pairs of kinds of replies, each followed by replies at random. With more loops, the pairs take turns."""

    def pairs(one, two):
        product = itertools.product(enumerate(one), enumerate(two))
        whole = loops == 1 or (team == "math" and loops == 2)
        return [(a, b) for (n, a), (m, b) in product if whole or (n + m + loops // 2) % 2]

    if team == "math":
        solver, verifier = SOLUTIONS.values(), JUDGEMENTS.values()
        for draft, verdict in pairs(solver, verifier if loops > 1 else [""]):
            yield {"Solver Agent": [draft, *draw(solver, loops)], "Verifier Agent": [verdict, *draw(verifier, loops)]}
        return
    verdicts, queries, answers = VERDICTS.values(), QUERIES.values(), ANSWERS.values()
    no, yes = VERDICTS["no"], VERDICTS["yes"]

    def script(first_verdicts, first_queries, first_answers):
        return {
            "Verifier Agent": [*first_verdicts, *draw(verdicts, loops)],
            "Search Agent": [*first_queries, *draw(queries, loops)],
            "Answer Agent": [*first_answers, *draw(answers, loops)],
        }

    if loops == 1:
        return (yield from (script([verdict], [], [answer]) for verdict, answer in pairs(verdicts, answers)))
    for query, answer in pairs(queries, answers):
        yield script([no, *[yes] * loops], [query], [answer])
    for verdict, query in pairs(verdicts, queries):
        yield script([verdict], [query], [])
    for query in queries:
        yield script([no] * loops, [query], [])


WHOLE = 12
"""The episodes of each suite whose prompts are stored in full; of all others the beginning of a hash is stored."""


def digest(messages):
    text = "".join(f"{message['role']}:{message['content']}" for message in messages)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def packed(team, episodes):
    """The episodes with rows as lists: agent, index of the reply, valid, reward, step, prompt."""
    replies = sorted({row["reply"] for episode in episodes for row in episode["rows"]})
    for n, episode in enumerate(episodes):
        episode["rows"] = [
            [
                IDS[team].index(row["agent"]),
                replies.index(row["reply"]),
                *(row[key] for key in ("valid", "reward", "step")),
                row["prompt"] if n < WHOLE else digest(row["prompt"]),
            ]
            for row in episode["rows"]
        ]
    passages = PASSAGES if team == "search" else {}
    return {"agents": IDS[team], "passages": passages, "replies": replies, "episodes": episodes}


def main():
    stand_ins()
    import requests

    requests.Session = Session
    commit = subprocess.check_output(["git", "-C", ROOT, "rev-parse", "--short=7", "HEAD"], text=True).strip()
    number = itertools.count()
    for team, loops in [("math", 1), ("math", 2), ("math", 3), ("search", 1), ("search", 2), ("search", 4)]:
        penalty = 0.1 if team == "math" else 0.01
        chance = random.Random(f"{team} {loops}")
        draw = lambda values, count: [chance.choice(list(values)) for _ in range(count)]
        cases = []
        for replies in cases_of(team, loops, draw):
            at = next(number)
            question, truth = (
                (f"What is 2 + 2 in {{x}}? (case {at})", "4")
                if team == "math"
                else (f"What is the capital of France? (case {at})", {"target": ["Paris", "Paris, France"]})
            )
            cases.append({"number": at, "question": question, "truth": truth, "replies": replies})
        chance.shuffle(cases)
        group = 2
        cases = cases[: len(cases) // group * group]
        with redirect_stdout(sys.stderr):
            episodes = list(play(team, cases, loops, penalty, group))
        source = {"name": f"{team} {loops}", "source": f"langfengQ/DrMAS {commit}", "loops": loops, "penalty": penalty}
        print(json.dumps({**source, **packed(team, episodes)}, ensure_ascii=False, separators=(",", ":")))


main()
