"""The facade for training loops."""

from __future__ import annotations

import json
import math
import os
import secrets
import statistics
import time
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Dict, Iterator, List, Optional, Type

from . import _environment as environment
from ._transport import Channel, Nats, Transport, log, quietly


@dataclass(frozen=True)
class Advice:
    """What the training should do at its next epoch."""

    batch_size: int  # samples per iteration
    from_epoch: int  # first epoch with the batch size and the CPUs, from 1
    stop: bool  # save a checkpoint and end: see Job.should_stop
    cpus: int  # threads or workers (courier run --resize control)
    loaders: int = 0  # data loaders of each worker, such as num_workers (courier run --loaders 0,2,4)


@dataclass(frozen=True)
class Interval:
    """Seconds until the end of the last epoch, with a probability of 90 % between low and high."""

    low: float
    median: float
    high: float

    def __str__(self) -> str:
        return f"{_duration(self.low)} to {_duration(self.high)}"


class Job:
    """A training job. It is silent without a server, and on all ranks but the first.

    model: name of the model. batch_size, epochs, cpus, loaders: what it trains with; under
    ``courier run`` the advised numbers are the default. dataset: name of the training data. job_id: 1 to 64
    characters of a-z, 0-9, _ and -, for a job that was submitted before; default: a new one. url:
    NATS servers; default: COURIER_NATS_URL.
    """

    def __init__(
        self,
        model: str = "",
        *,
        batch_size: Optional[int] = None,
        epochs: Optional[int] = None,
        cpus: Optional[int] = None,
        loaders: Optional[int] = None,
        dataset: str = "",
        job_id: Optional[str] = None,
        url: Optional[str] = None,
    ) -> None:
        self.model = model or "model"
        known_size = batch_size or environment.integer("COURIER_BATCH_SIZE")
        self._has_batch_size = known_size is not None
        self.batch_size = known_size or 1
        self.cpus = cpus or environment.integer("COURIER_CPUS") or 1
        self.loaders = environment.integer("COURIER_LOADERS") or 0 if loaders is None else loaders
        self.total_epochs = epochs or environment.integer("COURIER_EPOCHS") or 0
        self._done = environment.integer("COURIER_EPOCHS_DONE") or 0
        self._count = 0
        self._accuracy: Optional[float] = None
        self._started = self._last = time.monotonic()
        self._seconds: List[float] = []
        self._is_ended = False
        self._transport = Transport()
        known = job_id or os.environ.get("COURIER_JOB_ID")
        self.job_id = known or f"{environment.token(self.model)[:40]}-{secrets.token_hex(6)}"
        setting: Dict[str, Any] = {
            "model": self.model,
            "batch_size": self.batch_size,
            "cpus": self.cpus,
            "epochs": self.total_epochs,
            "nodes": [environment.node_name()],
            **({"loaders": self.loaders} if self.loaders else {}),
            **({"dataset": dataset} if dataset else {}),
        }
        self._open(url, setting, is_new=known is None)

    @quietly
    def _open(self, url: Optional[str], setting: Dict[str, Any], is_new: bool) -> None:
        if not environment.is_first_rank():
            return
        channel = os.environ.get("COURIER_CHANNEL")
        url = url or os.environ.get("COURIER_NATS_URL")
        if channel and os.path.exists(channel):
            self._transport = Channel(channel)
        elif url and not channel:
            if not self._has_batch_size:
                log.warning("nothing is reported: give Job the batch size")
                return
            self._transport = Nats(url, self.job_id, is_new)
        self._transport.start(setting)

    def __enter__(self) -> "Job":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close(error)

    @quietly
    def epoch(
        self,
        number: Optional[int] = None,
        *,
        seconds: Optional[float] = None,
        loss: Optional[float] = None,
        accuracy: Optional[float] = None,
        batch_size: Optional[int] = None,
        cpus: Optional[int] = None,
        loaders: Optional[int] = None,
        validation_samples: Optional[int] = None,
    ) -> None:
        """Reports a finished epoch.

        number: from 1; default: the next one. seconds: its duration; default: since the previous
        epoch. loss: of the training. accuracy: on held-out data, 0 to 1. batch_size, cpus, loaders:
        that the epoch ran with, which confirms that the training follows the advice.
        """
        now = time.monotonic()
        if seconds is None:
            seconds = now - self._last
        self._last = now
        self._count = number if number is not None else max(self._count, self._done) + 1
        if seconds > 0:
            self._seconds = (self._seconds + [seconds])[-50:]
        fields: Dict[str, Any] = {"epoch": self._count, "seconds": seconds}
        for name, value in (("loss", loss), ("accuracy", accuracy)):
            if value is not None and math.isfinite(float(value)):
                fields[name] = float(value)
        if not 0 <= fields.get("accuracy", 0) <= 1:
            log.warning("accuracy %s is not between 0 and 1: it is left out", fields["accuracy"])
            del fields["accuracy"]
        self._accuracy = fields.get("accuracy", self._accuracy)
        counts = {"batch_size": batch_size, "cpus": cpus, "validation_samples": validation_samples}
        fields.update((name, int(value)) for name, value in counts.items() if value)
        if loaders is not None:
            fields["loaders"] = int(loaders)
        self._transport.epoch(fields)

    def epochs(self, total: Optional[int] = None) -> Iterator["EpochHandle"]:
        """Yields the epochs that are left, and reports each one when the next begins.

        It ends early if Courier asks the training to stop.
        """
        total = total or self.total_epochs
        if total <= 0:
            raise ValueError("epochs: give the number of epochs to Job or to epochs()")
        self.total_epochs = total
        for number in range(self._done + 1, total + 1):
            if self.should_stop():
                return
            handle = EpochHandle(number)
            begin = time.monotonic()
            yield handle
            self.epoch(number, seconds=time.monotonic() - begin, **handle.metrics)

    def follow_advice(self) -> Advice:
        """The advice for the next epoch. Without any, the training continues unchanged."""
        control = self._control()
        advised = self._transport.advised_batch_size()
        batch_size = int(control.get("batch_size") or advised or self.batch_size)
        return Advice(
            batch_size=batch_size,
            from_epoch=int(control.get("from_epoch") or self._count + 1),
            stop=self.should_stop(),
            cpus=int(control.get("cpus") or self.cpus),
            loaders=int(control.get("loaders") or self.loaders),
        )

    def should_stop(self) -> bool:
        """Whether the training should end: the job is cancelled, or the next epoch would probably end
        too late (courier run --stop-when-late)."""
        return self._transport.cancellation() is not None or bool(self._control().get("stop"))

    def next_epoch_probability(self) -> Optional[float]:
        """The probability that one more epoch ends in time; None if it is unknown."""
        p = self._control().get("next_epoch_probability")
        return float(p) if p is not None else None

    def deadline(self) -> Optional[datetime]:
        """The deadline of the SLO, or the end of Slurm's time limit if that is earlier."""
        at = self._control().get("deadline_at")
        return datetime.fromisoformat(at.replace("Z", "+00:00")) if at else None

    def eta(self) -> Optional[Interval]:
        """The time until the end of the last epoch; None before the second epoch.

        It comes from the mean and the variance of the last 50 epochs of this run.
        """
        left = self.total_epochs - max(self._count, self._done)
        n = len(self._seconds)
        if n < 2 or left < 0:
            return None
        mean, variance = statistics.fmean(self._seconds), statistics.variance(self._seconds)
        z = 1.645  # 95 % quantile of the normal distribution
        half = z * math.sqrt(left * variance + left * left * variance / n)
        return Interval(max(0.0, left * mean - half), left * mean, left * mean + half)

    @quietly
    def close(self, error: Optional[BaseException] = None) -> None:
        """Reports the end of the job: failed with an error, finished without one."""
        if self._is_ended:
            return
        self._is_ended = True
        fields: Dict[str, Any] = {
            "epochs_done": self._count,
            "duration_seconds": time.monotonic() - self._started,
        }
        if self._accuracy is not None:
            fields["accuracy"] = self._accuracy
        outcome = "finished"
        if isinstance(error, KeyboardInterrupt):
            outcome, fields["reason"] = "cancelled", "interrupted"
        elif error is not None:
            outcome, fields["reason"] = "failed", f"{type(error).__name__}: {error}"[:1000]
        elif self._transport.cancellation() is not None:
            outcome, fields["reason"] = "cancelled", self._transport.cancellation()
        self._transport.end(outcome, fields)

    def _control(self) -> Dict[str, Any]:
        """The control file of courier run; empty without one."""
        try:
            with open(os.environ["COURIER_CONTROL"], encoding="utf-8") as file:
                content = json.load(file)
        except (KeyError, OSError, ValueError) as error:
            log.debug("control file: %r", error)
            return {}
        return content if isinstance(content, dict) else {}


class EpochHandle:
    """An epoch that runs."""

    def __init__(self, number: int) -> None:
        self.number = number  # from 1
        self.metrics: Dict[str, Any] = {}

    def report(
        self,
        *,
        loss: Optional[float] = None,
        accuracy: Optional[float] = None,
        batch_size: Optional[int] = None,
        cpus: Optional[int] = None,
        loaders: Optional[int] = None,
        validation_samples: Optional[int] = None,
    ) -> None:
        """Sets the metrics of the epoch, and the batch size, CPUs and loaders that it ran with.

        Those of the last call count.
        """
        self.metrics = {
            "loss": loss, "accuracy": accuracy, "batch_size": batch_size, "cpus": cpus,
            "loaders": loaders, "validation_samples": validation_samples,
        }


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
