"""Callback for LightGBM: ``lightgbm.train(..., callbacks=[DeadlineCallback(60)])``."""

from __future__ import annotations

from typing import Any, Optional

import lightgbm

from ._callbacks import RoundCallback
from ._job import Job


class DeadlineCallback(RoundCallback):
    """Says after some rounds how many fit before the deadline and what metric follows, and ends the
    fit before the deadline. Rounds are reported to Courier as epochs.

    slo_seconds: time for the fit; default: what COURIER_SLO_SECONDS leaves.
    """

    order = 30
    before_iteration = False

    def __init__(self, slo_seconds: Optional[float] = None, job: Optional[Job] = None) -> None:
        super().__init__(slo_seconds, job=job)

    def __call__(self, env: Any) -> None:
        self.rounds.total = env.end_iteration
        results = env.evaluation_result_list or []
        if not self._add((r[0] != "training", r[1], r[2]) for r in results):
            raise lightgbm.callback.EarlyStopException(env.iteration, results)
