"""The official client trains on a server at argv[1] whose model is argv[2]; prints one JSON object with the results."""
import json
import sys

import tinker
from tinker import types

url, model = sys.argv[1:3]
service = tinker.ServiceClient(base_url=url, api_key="tml-test")
seen = {"sdk": tinker.__version__}
seen["models"] = [each.model_name for each in service.get_server_capabilities().supported_models]
training = service.create_lora_training_client(base_model=model, rank=4, seed=1)
seen["rank"] = training.get_info().lora_rank

TEXTS = [[1, 2, 3, 4, 5, 6], [1, 7, 8, 9]]
adam = types.AdamParams(learning_rate=0.02, beta1=0.9, beta2=0.95, eps=1e-8)


def datum(tokens, **inputs):
    return types.Datum(
        model_input=types.ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={"target_tokens": tokens[1:], **inputs},
    )


def supervised():
    return [datum(tokens, weights=[1.0] * (len(tokens) - 1)) for tokens in TEXTS]


def nll(output):
    return -sum(float(value) for each in output.loss_fn_outputs for value in each["logprobs"].data)


losses = []
for _ in range(8):
    passed = training.forward_backward(supervised(), "cross_entropy")
    stepped = training.optim_step(adam)
    output = passed.result()
    losses.append(nll(output))
    seen["metrics"] = output.metrics
    stepped.result()
seen["losses"] = losses
seen["forward"] = nll(training.forward(supervised(), "cross_entropy").result())

saved = training.save_state("before-rl").result().path
sampling = training.save_weights_and_get_sampling_client("play")
prompt = types.ModelInput.from_ints([1, 2, 3])
params = types.SamplingParams(max_tokens=4, temperature=1.0, seed=7, stop=[])
first = sampling.sample(prompt=prompt, num_samples=3, sampling_params=params).result()
again = sampling.sample(prompt=prompt, num_samples=3, sampling_params=params).result()
seen["tokens"] = [list(map(int, each.tokens)) for each in first.sequences]
seen["repeats"] = seen["tokens"] == [list(map(int, each.tokens)) for each in again.sequences]
logprobs = [list(map(float, each.logprobs)) for each in first.sequences]

# A pass gives the sampled words the log-probs that the sampler gave.
whole = [[1, 2, 3, *tokens] for tokens in seen["tokens"]]
scored = training.forward([datum(tokens, weights=[1.0] * (len(tokens) - 1)) for tokens in whole], "cross_entropy").result()
seen["gap"] = max(
    abs(a - float(b)) for row, each in zip(logprobs, scored.loss_fn_outputs) for a, b in zip(row, list(each["logprobs"].data)[2:])
)
prompted = sampling.compute_logprobs(types.ModelInput.from_ints(TEXTS[0])).result()
seen["prompt_nll"] = -sum(value for value in prompted if value is not None)
seen["prompt_first"] = prompted[0]

for loss in ["importance_sampling", "ppo"]:
    before = seen["tokens"][0]
    rewarded = [
        datum(tokens, logprobs=[0.0, 0.0, *row], advantages=[0.0, 0.0] + [advantage] * len(row))
        for tokens, row, advantage in zip(whole, logprobs, [1.0, -0.5, -0.5])
    ]
    training.forward_backward(rewarded, loss).result()
    training.optim_step(adam).result()
after = training.forward([datum(tokens, weights=[1.0] * (len(tokens) - 1)) for tokens in whole], "cross_entropy").result()
seen["rewarded"] = sum(float(b) - a for a, b in zip(logprobs[0], list(after.loss_fn_outputs[0]["logprobs"].data)[2:]))


def shifted(data, logprobs):
    import numpy

    total = sum(-row.sum() for row in logprobs)
    return total, {"mean": float(total) / len(data)}


try:
    import torch  # noqa: F401

    seen["custom"] = training.forward_backward_custom(supervised(), shifted).result().metrics
    training.optim_step(adam).result()
except ImportError:
    seen["custom"] = None

restored = service.create_training_client_from_state(saved)
seen["restored"] = nll(restored.forward(supervised(), "cross_entropy").result())
path = training.save_weights_for_sampler("kept").result().path
kept = service.create_sampling_client(model_path=path)
seen["kept"] = len(kept.sample(prompt=prompt, num_samples=1, sampling_params=params).result().sequences[0].tokens)
base = service.create_sampling_client(base_model=model)
seen["base"] = len(base.sample(prompt=prompt, num_samples=1, sampling_params=params).result().sequences[0].tokens)
rest = service.create_rest_client()
seen["checkpoints"] = sorted(each.checkpoint_id for each in rest.list_checkpoints(training.model_id).result().checkpoints)
try:
    training.forward_backward([datum([1, 2, 99999], weights=[1.0, 1.0])], "cross_entropy").result()
except Exception as error:  # noqa: BLE001
    seen["refused"] = f"{type(error).__name__}: {error}"
print(json.dumps(seen))
