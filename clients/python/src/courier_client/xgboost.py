"""Callback for XGBoost: ``xgboost.train(..., callbacks=[DeadlineCallback(60, total=500)])``."""

from __future__ import annotations

from typing import Any

import xgboost

from ._callbacks import RoundCallback


class DeadlineCallback(RoundCallback, xgboost.callback.TrainingCallback):
    __doc__ = RoundCallback.__doc__

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        return not self._add(
            (name.lower().startswith(("val", "eval", "test")), metric, values[-1])
            for name, by_metric in evals_log.items() for metric, values in by_metric.items())

    def after_training(self, model: Any) -> Any:
        if self.rounds.job is not None:
            self.rounds.job.close()
        return model
