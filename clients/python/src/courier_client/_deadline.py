"""How many rounds of boosting fit before a deadline, and what accuracy follows."""

from __future__ import annotations

import logging
import math
import statistics
import time
from typing import List, Optional, Tuple

from . import _environment as environment
from ._job import Job

log = logging.getLogger("courier_client")

_WARM_UP = 5  # rounds before the first prediction; the first one includes the set-up
_BLOCK_SECONDS = 0.2  # rounds are reported in blocks, because they can be very short


class Rounds:
    """Counts the rounds of a fit against a deadline, and reports them as epochs.

    slo_seconds: time for the whole fit, from now; default: what COURIER_SLO_SECONDS leaves. total:
    number of rounds of the fit.
    """

    def __init__(
        self, slo_seconds: Optional[float] = None, total: int = 0, job: Optional[Job] = None
    ) -> None:
        slo = slo_seconds if slo_seconds is not None else environment.number("COURIER_SLO_SECONDS")
        self.begin = time.monotonic()
        self.deadline = self.begin + slo if slo else math.inf
        self.total = total
        self.job = job
        self.times: List[float] = []
        self.values: List[Tuple[int, float]] = []
        self.predicted_rounds: Optional[int] = None
        self.predicted_value: Optional[float] = None
        self._last = self._reported = self.begin
        self._number = self._in_block = 0

    def add(self, value: Optional[float] = None, accuracy: Optional[float] = None) -> bool:
        """Takes a finished round with its metric, and returns whether another one fits."""
        now = time.monotonic()
        self.times = (self.times + [now - self._last])[-200:]
        self._last = now
        self._in_block += 1
        self._number += 1
        number = self._number
        if value is not None and math.isfinite(value):
            self.values = (self.values + [(number, value)])[-2000:]
        if self.job is not None and (
                now - self._reported >= _BLOCK_SECONDS or number in (1, self.total)):
            self.job.epoch(number, seconds=(now - self._reported) / self._in_block,
                           accuracy=accuracy)
            self._reported, self._in_block = now, 0
        if number == _WARM_UP:
            self._predict(number, now)
        return now + self._next_round() <= self.deadline

    def _next_round(self) -> float:
        """An upper bound of the next round: the mean plus two deviations of the last ones."""
        times = self.times[1:] or self.times
        return statistics.fmean(times) + 2 * statistics.pstdev(times)

    def _predict(self, number: int, now: float) -> None:
        if math.isinf(self.deadline):
            return
        fits = number + max(0, int((self.deadline - now) / statistics.fmean(self.times[1:])))
        self.predicted_rounds = min(fits, self.total) if self.total else fits
        self.predicted_value = extrapolate(self.values, self.predicted_rounds)
        metric = ""
        if self.predicted_value is not None:
            metric = f", with a metric of about {self.predicted_value:.4g}"
        log.warning("%d of %s rounds fit before the deadline%s",
                    self.predicted_rounds, self.total or "the", metric)


def extrapolate(values: List[Tuple[int, float]], n: int) -> Optional[float]:
    """The value of a learning curve after n rounds: the best a + b*k**-c by least squares."""
    if len(values) < 3:
        return None
    best = (math.inf, 0.0)
    for c in (0.1, 0.25, 0.5, 1.0, 2.0):
        xs = [k ** -c for k, _ in values]
        ys = [v for _, v in values]
        mx, my = statistics.fmean(xs), statistics.fmean(ys)
        sxx = sum((x - mx) ** 2 for x in xs)
        if sxx == 0:
            continue
        b = sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sxx
        a = my - b * mx
        error = sum((a + b * x - y) ** 2 for x, y in zip(xs, ys))
        if error < best[0]:
            best = (error, a + b * n ** -c)
    return best[1]
