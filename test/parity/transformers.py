"""Loads saved models with transformers and compares their logits with ours.

usage: python transformers.py DIRECTORY... [--tolerance 3e-4]

`node --import tsx test/parity/save.ts` wrote each DIRECTORY: a model in Hugging Face's layout and, beside it,
expected.json with our logits: [{"ids": [T], "logits": [T * V]}]. Needs torch and transformers. Exits with 1 if they
differ.

transformers computes in float64 here. In float32 its own logits of a random SmolLM3 lie up to 2.6e-4 from its logits
in float64.
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
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIRECTORY")
    parser.add_argument("--tolerance", type=float, default=3e-4)
    arguments = parser.parse_args()
    equal = [compare(directory, arguments.tolerance) for directory in arguments.directories]
    return 0 if all(equal) else 1


def compare(directory: Path, tolerance: float) -> bool:
    """Whether the logits are equal and no tensor is missing or left over. Prints the difference and each problem."""
    model, info = AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float64, attn_implementation="eager", output_loading_info=True
    )
    model.eval()
    problems = [f"{kind}: {sorted(map(str, names))}" for kind, names in info.items() if names]

    worst = 0.0
    for case in json.loads((directory / "expected.json").read_text()):
        with torch.no_grad():
            theirs = model(torch.tensor([case["ids"]])).logits[0]
        ours = torch.tensor(case["logits"], dtype=torch.float64).reshape(theirs.shape)
        worst = max(worst, (ours - theirs).abs().max().item())
    if not worst <= tolerance:
        problems.append(f"logits differ by {worst:.3g}, more than {tolerance:g}")

    print(f"{directory}: {type(model).__name__}, largest difference {worst:.3g}")
    for problem in problems:
        print(f"  {problem}")
    return not problems


if __name__ == "__main__":
    sys.exit(main())
