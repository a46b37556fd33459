"""Log-probs of the next token, by transformers in float32, from a GGUF file.

Settings (JSON on stdin): { file, sequences: ids[][], to }. Writes float32 [sum of lengths, vocabulary] to `to`. Answers
with the number of parameters.
"""

import json
import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TQDM_DISABLE"] = "1"

import torch
from transformers import AutoModelForCausalLM

settings = json.load(sys.stdin)
file = Path(settings["file"])
torch.set_num_threads(1)
model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
model.eval()
with torch.no_grad(), open(settings["to"], "wb") as out:
    for ids in settings["sequences"]:
        logits = model(torch.tensor([ids])).logits[0]
        out.write(torch.log_softmax(logits, dim=-1).numpy().astype("<f4").tobytes())
print(json.dumps({"parameters": sum(p.numel() for p in model.parameters())}))
