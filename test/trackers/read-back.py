"""What the packages tensorboard and mlflow read of a run, as JSON: {reader: {metric: [[step, value], ...]}}."""
import json
import sys

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
