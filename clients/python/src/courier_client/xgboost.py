"""Callback for XGBoost: ``xgboost.train(..., callbacks=[DeadlineCallback(60, total=500)])``."""

from __future__ import annotations

from typing import Any, Optional

import xgboost

from ._deadline import Rounds
from ._job import Job
from ._metrics import pick


class DeadlineCallback(xgboost.callback.TrainingCallback):
    """Says after some rounds how many fit before the deadline and what metric follows, and ends the
    fit before the deadline. Rounds are reported to Courier as epochs.

    slo_seconds: time for the fit; default: what COURIER_SLO_SECONDS leaves. total: number of rounds.
    """

    def __init__(
        self, slo_seconds: Optional[float] = None, total: int = 0, job: Optional[Job] = None
    ) -> None:
        super().__init__()
        self.rounds = Rounds(slo_seconds, total, job)

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        metrics = {
            f"{name}_{metric}" if name.lower().startswith(("val", "eval", "test")) else
            f"train_{metric}": values[-1]
            for name, by_metric in evals_log.items() for metric, values in by_metric.items()
        }
        found = pick(metrics)
        value = found.get("accuracy", found.get("loss"))
        return not self.rounds.add(value, found.get("accuracy"))

    def after_training(self, model: Any) -> Any:
        if self.rounds.job is not None:
            self.rounds.job.close()
        return model
