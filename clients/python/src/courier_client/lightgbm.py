"""Callback for LightGBM: ``lightgbm.train(..., callbacks=[DeadlineCallback(60)])``."""

from __future__ import annotations

from typing import Any, Optional

import lightgbm

from ._deadline import Rounds
from ._job import Job
from ._metrics import pick


class DeadlineCallback:
    """Says after some rounds how many fit before the deadline and what metric follows, and ends the
    fit before the deadline. Rounds are reported to Courier as epochs.

    slo_seconds: time for the fit; default: what COURIER_SLO_SECONDS leaves.
    """

    order = 30
    before_iteration = False

    def __init__(self, slo_seconds: Optional[float] = None, job: Optional[Job] = None) -> None:
        self.rounds = Rounds(slo_seconds, 0, job)

    def __call__(self, env: Any) -> None:
        self.rounds.total = env.end_iteration
        metrics = {
            f"train_{r[1]}" if r[0] == "training" else f"valid_{r[1]}": r[2]
            for r in env.evaluation_result_list or []
        }
        found = pick(metrics)
        value = found.get("accuracy", found.get("loss"))
        if not self.rounds.add(value, found.get("accuracy")):
            raise lightgbm.callback.EarlyStopException(
                env.iteration, env.evaluation_result_list or [])
