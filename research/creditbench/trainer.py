"""Fills in a row of CreditBench from Python: plain PyTorch on the CPU, GRPO, tiny policies.

    npm run findings -- creditbench --serve 8765 &
    pip install torch==2.13.0
    python research/creditbench/trainer.py http://127.0.0.1:8765 row.json --families free-rider --seeds 1
    npm run findings -- creditbench --validate row.json

A policy embeds the words of a prompt at their places and maps them to the eight answers through one hidden layer.
"""

import argparse
import json
import time
import urllib.parse
import urllib.request

import torch

LONGEST_PROMPT = 4
EMBEDDED = 16
HIDDEN = 64


class Bench:
    def __init__(self, url):
        self.url = url
        self.facts = self.get("/families")
        self.budget = self.facts["budget"]
        self.answers = self.facts["answers"]
        self.words = {word: i for i, word in enumerate(self.facts["vocabulary"])}

    def get(self, path, **query):
        with urllib.request.urlopen(f"{self.url}{path}?{urllib.parse.urlencode(query)}") as reply:
            return json.load(reply)

    def post(self, path, body):
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"content-type": "application/json"})
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)


class Policy(torch.nn.Module):
    def __init__(self, words, answers):
        super().__init__()
        self.embedding = torch.nn.Embedding(words, EMBEDDED)
        self.hidden = torch.nn.Linear(LONGEST_PROMPT * EMBEDDED, HIDDEN)
        self.out = torch.nn.Linear(HIDDEN, answers)

    def forward(self, prompts):  # [N, LONGEST_PROMPT] word ids -> [N, answers] log-probs
        embedded = self.embedding(prompts).flatten(1)
        return torch.log_softmax(self.out(torch.tanh(self.hidden(embedded))), -1)


def play(bench, policies, family, seed, step, tasks, samples, generator):
    """Plays `samples` episodes of each task; returns the turns of each episode, its rewards and its score."""
    episodes = [
        {"family": family, "task": task, "seed": seed, "step": step, "sample": sample, "answers": []}
        for task in tasks
        for sample in range(samples)
    ]
    turns = [[] for _ in episodes]
    ends = [None] * len(episodes)
    left = list(range(len(episodes)))
    while left:
        states = bench.post("/play", {"episodes": [episodes[i] for i in left]})["episodes"]
        waiting = []
        for i, state in zip(left, states):
            if state["done"]:
                ends[i] = state
            else:
                waiting.append((i, state))
        for name in {state["policy"] for _, state in waiting}:
            mine = [(i, state) for i, state in waiting if state["policy"] == name]
            prompts = torch.tensor([[bench.words[word] for word in state["prompt"]] for _, state in mine])
            with torch.no_grad():
                drawn = torch.multinomial(policies[name](prompts).exp(), 1, generator=generator)[:, 0]
            for (i, _), prompt, answer in zip(mine, prompts, drawn.tolist()):
                turns[i].append((name, prompt, answer))
                episodes[i]["answers"].append(bench.answers[answer])
        left = [i for i, _ in waiting]
    return turns, ends


def warm_start(bench, policies, family, seed):
    shown = bench.get("/demonstrations", family=family, seed=seed, count=4000)["demonstrations"]
    for name, policy in policies.items():
        mine = [each for each in shown if each["policy"] == name]
        prompts = torch.tensor([[bench.words[word] for word in each["prompt"]] for each in mine])
        answers = torch.tensor([bench.answers.index(each["answer"]) for each in mine])
        optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-2)
        for _ in range(100):
            optimizer.zero_grad()
            torch.nn.functional.nll_loss(policy(prompts), answers).backward()
            optimizer.step()


def grpo(turns, ends, samples):
    """One advantage for each episode: its mean reward among the episodes of its task, over their spread."""
    scores = torch.tensor([sum(end["rewards"]) / len(end["rewards"]) for end in ends]).view(-1, samples)
    centred = scores - scores.mean(1, keepdim=True)
    return (centred / (scores.std(1, keepdim=True) + 1e-6)).flatten()


def train(bench, family, seed, rate):
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    names = sorted(set(next(f for f in bench.facts["families"] if f["id"] == family)["policies"].values()))
    policies = {name: Policy(len(bench.words), len(bench.answers)) for name in names}
    warm_start(bench, policies, family, seed)
    optimizers = {name: torch.optim.AdamW(policy.parameters(), lr=rate) for name, policy in policies.items()}
    budget = bench.budget
    tests = bench.get("/tasks", family=family, split="test", seed=seed)["tasks"]

    def evaluate(step):
        _, ends = play(bench, policies, family, seed, 1000 + step, tests, budget["samples"], generator)
        return sum(end["score"] for end in ends) / len(ends)

    curve = [evaluate(0)]
    played = 0
    for step in range(1, budget["steps"] + 1):
        tasks = bench.get("/tasks", family=family, split="train", seed=seed, step=step)["tasks"]
        turns, ends = play(bench, policies, family, seed, step, tasks, budget["groupSize"], generator)
        played += len(ends)
        advantages = grpo(turns, ends, budget["groupSize"])
        for name, policy in policies.items():
            mine = [
                (prompt, answer, advantage)
                for episode, advantage in zip(turns, advantages)
                for by, prompt, answer in episode
                if by == name
            ]
            if not mine:
                continue
            prompts = torch.stack([prompt for prompt, _, _ in mine])
            answers = torch.tensor([answer for _, answer, _ in mine])
            weights = torch.stack([advantage for _, _, advantage in mine])
            chosen = policy(prompts)[torch.arange(len(mine)), answers]
            optimizers[name].zero_grad()
            (-(weights * chosen).mean()).backward()
            optimizers[name].step()
        if step % (budget["steps"] // budget["evaluations"]) == 0:
            curve.append(evaluate(step))
    return curve, played


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("out")
    parser.add_argument("--families", default="")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rate", type=float, default=1e-2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    bench = Bench(args.url)
    known = {family["id"]: family for family in bench.facts["families"]}
    started = time.process_time()
    runs = []
    for family in args.families.split(",") if args.families else known:
        for seed in range(11, 11 + args.seeds):
            curve, played = train(bench, family, seed, args.rate)
            usual = known[family]["knob"]["usual"]
            runs.append({"family": family, "difficulty": usual, "seed": seed, "curve": curve, "episodes": played})
            print(family, seed, " ".join(f"{score:.3f}" for score in curve), flush=True)
    row = {
        "benchmark": "creditbench",
        "version": bench.facts["version"],
        "name": "grpo (PyTorch)",
        "system": f"trainer.py with torch {torch.__version__}",
        "checklist": {
            "granularity": "an episode: all of its turns have one advantage",
            "method": "samples: the mean and the spread of a task's episodes",
            "extra": "nothing",
            "policy": f"embeddings and one hidden layer, {sum(p.numel() for p in Policy(len(bench.words), 8).parameters())} parameters a policy",
            "tuning": f"AdamW at {args.rate:g}, not tuned",
            "compute": f"{(time.process_time() - started) / 3600:.3f} h of one processor core, without the server",
        },
        "runs": runs,
    }
    with open(args.out, "w") as file:
        json.dump(row, file)


main()
