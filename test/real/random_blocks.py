"""Random blocks of each GGUF number format, and their numbers by the package gguf (llama.cpp's own) with numpy."""
import base64, json, sys
from importlib.metadata import version
import numpy as np
from gguf import quants, GGML_QUANT_SIZES, GGMLQuantizationType as T
rng = np.random.default_rng(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
count = int(sys.argv[2]) if len(sys.argv) > 2 else 2
# The places of float16 scales in a block; random bytes could be infinite or NaN there.
halves = {'Q4_0': [0], 'Q4_1': [0, 2], 'Q5_0': [0], 'Q5_1': [0, 2], 'Q8_0': [0], 'Q4_K': [0, 2], 'Q5_K': [0, 2], 'Q6_K': [208]}
out = {}
for name, places in halves.items():
    kind = T[name]
    numbers, size = GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for at in places:
        blocks[:, at:at + 2] = rng.normal(0, 0.02, (count, 1)).astype(np.float16).view(np.uint8)
    values = quants.dequantize(blocks, kind).astype('<f4')
    out[name] = {'type': int(kind), 'blocks': base64.b64encode(blocks.tobytes()).decode(), 'numbers': base64.b64encode(values.tobytes()).decode()}
print(json.dumps({"library": "gguf " + version("gguf"), "formats": out}, indent=1))
