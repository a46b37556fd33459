"""Loads a saved model with transformers and compares its logits with ours.

usage: python transformers.py DIRECTORY [--tolerance 1e-4]

DIRECTORY is what `node --import tsx test/parity/save.ts` wrote: a model in Hugging Face's layout and, beside it, expected.json
with our logits: [{"ids": [T], "logits": [T * V]}]. Needs torch and transformers. Exits with 1 where they differ.
"""

import argparse
import json
import sys
from pathlib import Path

# The directory of this file comes first in the search path, where its name would hide the library's.
sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

import torch  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    arguments = parser.parse_args()

    model, info = AutoModelForCausalLM.from_pretrained(
        arguments.directory, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    model.eval()
    problems = [f"{kind}: {sorted(map(str, names))}" for kind, names in info.items() if names]

    worst = 0.0
    for case in json.loads((arguments.directory / "expected.json").read_text()):
        with torch.no_grad():
            theirs = model(torch.tensor([case["ids"]])).logits[0]
        ours = torch.tensor(case["logits"], dtype=torch.float32).reshape(theirs.shape)
        worst = max(worst, (ours - theirs).abs().max().item())
    if not worst <= arguments.tolerance:
        problems.append(f"logits differ by {worst:.3g}, more than {arguments.tolerance:g}")

    print(f"{arguments.directory}: {type(model).__name__}, largest difference {worst:.3g}")
    for problem in problems:
        print(f"  {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
