"""What the callbacks of the frameworks share."""

from __future__ import annotations

import time
from typing import Any, Iterable, Mapping, Optional, Tuple

from ._deadline import Rounds
from ._job import Job
from ._metrics import pick


class EpochCallback:
    """Reports each epoch with its validation metrics, and ends the training where Courier asks.

    job: default: a new one with the name of the model.
    """

    def __init__(self, job: Optional[Job] = None) -> None:
        super().__init__()
        self.job = job
        self._begin = 0.0

    def _open(self, model: str, epochs: Optional[int], batch_size: Optional[int] = None) -> None:
        if self.job is None:
            self.job = Job(model, batch_size=batch_size, epochs=epochs)
        self.job.total_epochs = self.job.total_epochs or epochs or 0

    def _begin_epoch(self) -> None:
        self._begin = time.monotonic()

    def _seconds(self) -> float:
        return time.monotonic() - self._begin

    def _report(self, number: int, seconds: float, metrics: Mapping[str, Any]) -> None:
        assert self.job is not None
        self.job.epoch(number, seconds=seconds, **pick(metrics))

    def _should_stop(self) -> bool:
        return self.job is not None and self.job.should_stop()

    def _close(self, error: Optional[BaseException] = None) -> None:
        if self.job is not None:
            self.job.close(error)


class RoundCallback:
    """Says after some rounds how many fit before the deadline and what metric follows, and ends the
    fit before the deadline. Rounds are reported to Courier as epochs.

    slo_seconds: time for the fit; default: what COURIER_SLO_SECONDS leaves. total: number of rounds.
    """

    def __init__(
        self, slo_seconds: Optional[float] = None, total: int = 0, job: Optional[Job] = None
    ) -> None:
        super().__init__()
        self.rounds = Rounds(slo_seconds, total, job)

    def _add(self, results: Iterable[Tuple[bool, str, Any]]) -> bool:
        """Takes (whether it is of held-out data, metric, value); returns whether another round fits."""
        found = pick({f"{'valid' if held_out else 'train'}_{metric}": value
                      for held_out, metric, value in results})
        return self.rounds.add(found.get("accuracy", found.get("loss")), found.get("accuracy"))
