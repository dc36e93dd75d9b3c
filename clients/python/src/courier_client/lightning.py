"""Callback for Lightning 2: ``Trainer(callbacks=[CourierCallback(job)])``."""

from __future__ import annotations

import time
from typing import Any, Optional

import lightning

from ._job import Job
from ._metrics import pick


class CourierCallback(lightning.Callback):
    """Reports each epoch with its validation metrics, shows the time left in the progress bar, and
    ends the training where Courier asks.

    job: default: a new one with the name of the module.
    """

    def __init__(self, job: Optional[Job] = None) -> None:
        self.job = job
        self._begin = 0.0

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        epochs = trainer.max_epochs if (trainer.max_epochs or 0) > 0 else None
        if self.job is None:
            self.job = Job(type(pl_module).__name__, epochs=epochs)
        self.job.total_epochs = self.job.total_epochs or epochs or 0

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin = time.monotonic()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        assert self.job is not None
        if not trainer.is_global_zero:
            return
        seconds = time.monotonic() - self._begin
        self.job.epoch(trainer.current_epoch + 1, seconds=seconds,
                       **pick(trainer.callback_metrics))
        eta = self.job.eta()
        if eta is not None:
            for name, value in (("eta_low_s", eta.low), ("eta_high_s", eta.high)):
                pl_module.log(name, round(value, 1), prog_bar=True, logger=False)
        if self.job.should_stop():
            trainer.should_stop = True

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        assert self.job is not None
        self.job.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self.job is not None:
            self.job.close(exception)
