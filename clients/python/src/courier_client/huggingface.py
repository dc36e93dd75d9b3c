"""Callback for the Trainer of Hugging Face: ``Trainer(callbacks=[CourierCallback(job)])``."""

from __future__ import annotations

import time
from typing import Any, Dict, Optional

from transformers import TrainerCallback

from ._job import Job
from ._metrics import pick


class CourierCallback(TrainerCallback):
    """Reports each epoch, with the metrics of its evaluation if ``eval_strategy`` is "epoch", and
    ends the training where Courier asks. The time left appears among the logged values.

    job: default: a new one with the name of the model.
    """

    def __init__(self, job: Optional[Job] = None) -> None:
        self.job = job
        self._begin = 0.0
        self._metrics: Dict[str, Any] = {}
        self._pending: Optional[int] = None
        self._seconds = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.job is None:
            name = type(kwargs["model"]).__name__ if kwargs.get("model") is not None else "model"
            self.job = Job(name, batch_size=args.train_batch_size,
                           epochs=int(args.num_train_epochs))
        self.job.total_epochs = self.job.total_epochs or int(args.num_train_epochs)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._report()
        self._begin = time.monotonic()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        self._metrics.update(logs or {})
        if self.job is not None and logs is not None:
            eta = self.job.eta()
            if eta is not None:
                logs["eta"] = str(eta)

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any
    ) -> None:
        self._metrics.update(metrics or {})

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._pending = round(state.epoch)
        self._seconds = time.monotonic() - self._begin
        if self.job is not None and self.job.should_stop():
            control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._report()
        if self.job is not None:
            self.job.close()

    def _report(self) -> None:
        """Reports the last epoch. Its evaluation comes after its end."""
        if self._pending is None or self.job is None:
            return
        self.job.epoch(self._pending, seconds=self._seconds, **pick(self._metrics))
        self._pending = None
        self._metrics = {}
