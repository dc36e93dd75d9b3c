"""Callback for Keras 3: ``model.fit(..., callbacks=[CourierCallback(job)])``."""

from __future__ import annotations

import time
from typing import Any, Dict, Optional

import keras

from ._job import Job
from ._metrics import pick


class CourierCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Reports each epoch with its validation metrics, and ends the training where Courier asks.

    job: default: a new one with the name of the model.
    """

    def __init__(self, job: Optional[Job] = None) -> None:
        super().__init__()
        self.job = job
        self._begin = 0.0

    def on_train_begin(self, logs: Optional[Dict[str, Any]] = None) -> None:
        epochs = self.params.get("epochs")
        if self.job is None:
            self.job = Job(self.model.name, epochs=epochs)
        self.job.total_epochs = self.job.total_epochs or epochs or 0

    def on_epoch_begin(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        self._begin = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        assert self.job is not None
        seconds = time.monotonic() - self._begin
        self.job.epoch(epoch + 1, seconds=seconds, **pick(logs or {}))
        if self.job.should_stop():
            self.model.stop_training = True

    def on_train_end(self, logs: Optional[Dict[str, Any]] = None) -> None:
        assert self.job is not None
        self.job.close()
