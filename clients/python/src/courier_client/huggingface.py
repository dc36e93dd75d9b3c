"""Callback for the Trainer of Hugging Face: ``Trainer(callbacks=[CourierCallback(job)])``."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from transformers import TrainerCallback

from ._callbacks import EpochCallback
from ._job import Job


class CourierCallback(EpochCallback, TrainerCallback):
    """Reports each epoch, with the metrics of its evaluation if ``eval_strategy`` is "epoch", and
    ends the training where Courier asks. The time left appears among the logged values.

    job: default: a new one with the name of the model.
    """

    def __init__(self, job: Optional[Job] = None) -> None:
        super().__init__(job)
        self._metrics: Dict[str, Any] = {}
        self._ended: Optional[Tuple[int, float]] = None  # the epoch whose evaluation follows

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        name = type(kwargs["model"]).__name__ if kwargs.get("model") is not None else "model"
        self._open(name, int(args.num_train_epochs), args.train_batch_size)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._report_ended()
        self._begin_epoch()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        self._metrics.update(logs or {})
        eta = self.job and self.job.eta()
        if eta and logs is not None:
            logs["eta"] = str(eta)

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any
    ) -> None:
        self._metrics.update(metrics or {})

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._ended = round(state.epoch), self._seconds()
        if self._should_stop():
            control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._report_ended()
        self._close()

    def _report_ended(self) -> None:
        if self._ended is not None:
            self._report(*self._ended, self._metrics)
            self._ended, self._metrics = None, {}
