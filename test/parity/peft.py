"""Loads a saved adapter with peft and compares its logits with ours.

usage: python peft.py DIRECTORY [--tolerance 1e-4] [--resave OTHER]

DIRECTORY is what `node --import tsx test/parity/save.ts BASE DIRECTORY --adapter` wrote: an adapter in PEFT's format that names its
base and, beside it, expected.json with our logits. With --resave, peft writes the adapter anew, for our loadPolicy to read:
`save.ts OTHER COPY`, then this script again on COPY. Needs torch, transformers and peft. Exits with 1 where they differ.
"""

import argparse
import json
import sys
from pathlib import Path

# The directory of this file comes first in the search path, where its name would hide the library's.
sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

import torch  # noqa: E402
from peft import PeftConfig, PeftModel  # noqa: E402
from peft.utils import load_peft_weights  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--resave", type=Path)
    arguments = parser.parse_args()

    config = PeftConfig.from_pretrained(str(arguments.directory))
    base = AutoModelForCausalLM.from_pretrained(
        config.base_model_name_or_path, dtype=torch.float32, attn_implementation="eager"
    )
    model = PeftModel.from_pretrained(base, str(arguments.directory))
    model.eval()
    problems = []
    stored = {name: value.shape for name, value in load_peft_weights(str(arguments.directory)).items()}
    loaded = {
        name.replace(".default", ""): value.shape for name, value in model.state_dict().items() if ".lora_" in name
    }
    if stored != loaded:
        problems.append(f"the file holds {len(stored)} tensors, peft expects {len(loaded)} or other shapes")

    worst = 0.0
    change = 0.0
    for case in json.loads((arguments.directory / "expected.json").read_text()):
        ids = torch.tensor([case["ids"]])
        with torch.no_grad():
            theirs = model(ids).logits[0]
            with model.disable_adapter():
                change = max(change, (model(ids).logits[0] - theirs).abs().max().item())
        ours = torch.tensor(case["logits"], dtype=torch.float32).reshape(theirs.shape)
        worst = max(worst, (ours - theirs).abs().max().item())
    if not worst <= arguments.tolerance:
        problems.append(f"logits differ by {worst:.3g}, more than {arguments.tolerance:g}")
    if not change > 100 * arguments.tolerance:
        problems.append(f"the adapter changes logits by {change:.3g} only")

    if arguments.resave is not None:
        model.save_pretrained(str(arguments.resave))
    print(f"{arguments.directory}: {type(model).__name__}, largest difference {worst:.3g}, adapter's share {change:.3g}")
    for problem in problems:
        print(f"  {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
