"""Callback for Lightning 2: ``Trainer(callbacks=[CourierCallback(job)])``."""

from __future__ import annotations

from typing import Any

import lightning

from ._callbacks import EpochCallback


class CourierCallback(EpochCallback, lightning.Callback):
    """Reports each epoch with its validation metrics, shows the time left in the progress bar, and
    ends the training where Courier asks.

    job: default: a new one with the name of the module.
    """

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        epochs = trainer.max_epochs if (trainer.max_epochs or 0) > 0 else None
        self._open(type(pl_module).__name__, epochs)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin_epoch()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.is_global_zero:
            return
        self._report(trainer.current_epoch + 1, self._seconds(), trainer.callback_metrics)
        eta = self.job and self.job.eta()
        if eta:
            for name, value in (("eta_low_s", eta.low), ("eta_high_s", eta.high)):
                pl_module.log(name, round(value, 1), prog_bar=True, logger=False)
        if self._should_stop():
            trainer.should_stop = True

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._close(exception)
