"""An environment of verifiers: sums, graded by a rubric. It is made while the module loads: verifiers sets signal
handlers, which only the main thread can."""

import verifiers as vf
from datasets import Dataset

rows = [{"question": f"{a}+{b}=", "answer": str(a + b)} for a in range(1, 4) for b in range(1, 4)]


def correct(completion, answer, **_):
    return float(completion[-1]["content"].strip() == answer)


environment = vf.SingleTurnEnv(
    dataset=Dataset.from_list(rows), eval_dataset=Dataset.from_list(rows[::3]), rubric=vf.Rubric(funcs=[correct])
)


def load_environment():
    return environment
