"""Callback for CatBoost: ``model.fit(..., callbacks=[DeadlineCallback(60, total=500)])``."""

from __future__ import annotations

from typing import Any, Optional

from ._deadline import Rounds
from ._job import Job
from ._metrics import pick


class DeadlineCallback:
    """Says after some rounds how many fit before the deadline and what metric follows, and ends the
    fit before the deadline. Rounds are reported to Courier as epochs.

    slo_seconds: time for the fit; default: what COURIER_SLO_SECONDS leaves. total: number of rounds.
    """

    def __init__(
        self, slo_seconds: Optional[float] = None, total: int = 0, job: Optional[Job] = None
    ) -> None:
        self.rounds = Rounds(slo_seconds, total, job)

    def after_iteration(self, info: Any) -> bool:
        metrics = {
            f"train_{metric}" if name == "learn" else f"valid_{metric}": values[-1]
            for name, by_metric in (info.metrics or {}).items()
            for metric, values in by_metric.items()
        }
        found = pick(metrics)
        value = found.get("accuracy", found.get("loss"))
        return self.rounds.add(value, found.get("accuracy"))
