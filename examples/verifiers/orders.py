"""A taskset of verifiers for its environment `user-sim`: the user knows a number, and the assistant has to say it."""

import verifiers.v1 as vf

__all__ = ["Orders"]


class OrderData(vf.TaskData):
    answer: str


class OrderTask(vf.Task[OrderData, vf.State, vf.TaskConfig]):
    @vf.reward
    async def said(self, trace: vf.Trace) -> float:
        return float(self.data.answer in (trace.last_reply or ""))


class Orders(vf.Taskset[OrderTask, vf.TasksetConfig]):
    def load(self):
        for number in range(10):
            yield OrderTask(OrderData(prompt=str(number), system_prompt="help", answer=str(number)), self.config.task)
