"""Callback for Keras 3: ``model.fit(..., callbacks=[CourierCallback(job)])``."""

from __future__ import annotations

from typing import Any, Dict, Optional

import keras

from ._callbacks import EpochCallback


class CourierCallback(EpochCallback, keras.callbacks.Callback):  # type: ignore[misc]
    __doc__ = EpochCallback.__doc__

    def on_train_begin(self, logs: Optional[Dict[str, Any]] = None) -> None:
        self._open(self.model.name, self.params.get("epochs"))

    def on_epoch_begin(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        self._begin_epoch()

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        self._report(epoch + 1, self._seconds(), logs or {})
        if self._should_stop():
            self.model.stop_training = True

    def on_train_end(self, logs: Optional[Dict[str, Any]] = None) -> None:
        self._close()
