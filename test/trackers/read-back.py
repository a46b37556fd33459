"""
What the packages tensorboard and mlflow read of a run, as JSON: {reader: {metric: [[step, value], ...]}}. With one
argument: the rows that the package wandb wrote below a folder, as [{metric: value}, ...].
"""
import glob
import json
import struct
import sys


def wandb_records(path):
    """The records of a file: a header of 7 bytes, then the framing of LevelDB's log."""
    from wandb.proto import wandb_internal_pb2

    with open(path, "rb") as file:
        data = file.read()
    at, whole = 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        whole += data[at + 7:at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            yield record
            whole = b""


if len(sys.argv) == 2:
    [found] = glob.glob(f"{sys.argv[1]}/offline-run-*/*.wandb")
    rows = [record.history.item for record in wandb_records(found) if record.WhichOneof("record_type") == "history"]
    print(json.dumps([{i.key or ".".join(i.nested_key): json.loads(i.value_json) for i in row} for row in rows]))
    sys.exit()

from mlflow.tracking import MlflowClient
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

directory, server, run_id = sys.argv[1:]

events = EventAccumulator(directory, size_guidance={"scalars": 0})
events.Reload()
scalars = {tag: [[at.step, at.value] for at in events.Scalars(tag)] for tag in events.Tags()["scalars"]}

client = MlflowClient(server)
run = client.get_run(run_id)
metrics = {key: [[at.step, at.value] for at in client.get_metric_history(run_id, key)] for key in run.data.metrics}

print(json.dumps({
    "tensorboard": scalars,
    "mlflow": metrics,
    "run": {"status": run.info.status, "params": run.data.params},
}))
