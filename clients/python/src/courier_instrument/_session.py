"""What this process reports: fits, units, progress, and the end.

There is one session in each process. It is created when the first framework is imported, and opens
the channel when there is something to report, so that processes without a training stay silent.
"""

import atexit
import collections
import os
import sys
import time

from . import _guard, _names
from ._channel import Channel

PROGRESS_SECONDS = 1.0
BLOCK_SECONDS = 0.2  # rounds, and units shorter than SHORT_SECONDS, are reported in blocks
SHORT_SECONDS = 0.05
MAX_VALUES = 1000  # logged values that are kept for the unit in which they were logged
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK", "LOCAL_RANK")

clock = time.perf_counter

_rank = None  # in the process group; it stays known after the group is destroyed


def is_first_rank():
    """Whether this process reports for its job. A launcher may set the rank only after the start."""
    global _rank
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            _rank = distributed.get_rank()
    except Exception:
        pass
    if _rank is not None:
        return _rank == 0
    for name in RANKS:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name]) == 0
    return os.environ.get("SLURM_NTASKS", "1") == "1" or os.environ.get("SLURM_PROCID", "0") == "0"


def _world():
    """The number of processes that train together."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return distributed.get_world_size()
    except Exception:
        pass
    return None


class Fit:
    """A training whose epochs or rounds are known. While that of a framework is active, the epochs
    that loaders and optimizers show are not reported: they are the same ones."""

    def __init__(self, source, total=None, unit="epoch", batch_size=None):
        self.source, self.unit_name, self.total = source, unit, total
        self.batch_size = batch_size
        self._session = session()
        self._base = None
        self._began = clock()
        self._values = []
        self._session.enter(self)

    def begin_unit(self):
        """A unit begins now. Without this call it begins where the previous one ended."""
        self._began = clock()

    def log(self, values):
        for name, value in values.items():
            number = _names.number_of(value)
            if number is not None:
                self._values.append((str(name), number))

    def unit(self, number, values=None, ended=None, **measured):
        """A unit with the script's number, from 1, has ended, by default now."""
        now = clock() if ended is None else ended
        if self._base is None:
            self._base = self._session.base_for(number)
        if values:
            self.log(values)
        message = self._session.measured_since(self._began)
        message.update(batch_size=self.batch_size, **measured)
        message.update(_names.pick(self._values + self._session.values_between(self._began, now)))
        self._session.unit(self, self._base + number, self._began, now, message)
        self._began, self._values = now, []

    def end(self):
        self._session.leave(self)


class Session:
    def __init__(self):
        self.fits = []  # of frameworks that are active, innermost last
        self.tracker = None  # set by _torch
        self._channel = Channel(os.environ.get("COURIER_INSTRUMENT_CHANNEL", ""))
        self._reset()
        atexit.register(self.finish)
        os.register_at_fork(after_in_child=self._after_fork)

    def _reset(self):
        self.next_progress = 0.0
        self.highest = 0  # number of the last unit
        self.held = None  # a unit whose end is not known yet; set by _keras
        self._block = None
        self._has_said_hello = False
        self._is_finished = False
        self._values = collections.deque(maxlen=MAX_VALUES)
        self._saves = collections.deque(maxlen=100)
        self._pid = os.getpid()

    @_guard.quietly
    def _after_fork(self):
        """A child starts without fits. It may be a worker of a loader, or train itself."""
        self._channel.after_fork()
        self.fits.clear()
        self._reset()
        if self.tracker is not None:
            self.tracker.restart()
        util = sys.modules.get("multiprocessing.util")
        if util is not None:  # its children do not run atexit
            util.Finalize(None, self.finish, exitpriority=-10)

    # Messages

    def send(self, kind, may_be_lost=False, **fields):
        if not is_first_rank():
            return
        if not self._has_said_hello:
            self._has_said_hello = True
            _flush_before_exit(self)
        message = {"type": kind}
        message.update((k, round(v, 6) if isinstance(v, float) else v)
                       for k, v in fields.items() if v is not None)
        self._channel.send(message, may_be_lost)

    def announce(self, source, unit, began, **fields):
        """A training begins, with the seconds since then."""
        self.send("fit", source=source, unit=unit, ago=clock() - began, world=_world(), **fields)

    def unit(self, fit, number, began, ended, fields):
        """A unit has ended. Short ones wait for others, and are then reported as a block."""
        self.highest = max(self.highest, number)
        block = self._block
        if block is not None and (block[0] is not fit or block[1] != number - 1):
            self.flush()
            block = None
        first, count = (block[2], block[3] + 1) if block is not None else (began, 1)
        self._block = (fit, number, first, count, ended, fields)
        is_short = fit.unit_name == "round" or ended - began < SHORT_SECONDS
        if not is_short or ended - first >= BLOCK_SECONDS or number == fit.total:
            self.flush()

    def report_held(self, ended=None):
        """Reports the unit whose end was not known, with a new end if one is given."""
        held, self.held = self.held, None
        if held is not None:
            held.report(held.ended if ended is None else ended)

    def flush(self):
        """Reports the units that wait."""
        if self._block is None:
            return
        fit, number, began, count, ended, fields = self._block
        self._block = None
        self.send("unit", epoch=number, count=count, seconds=(ended - began) / count,
                  ago=clock() - ended, source=fit.source, unit=fit.unit_name, of=fit.total,
                  **fields, **_memory())
        for error in _guard.errors():
            self.send("error", text=error)

    def progress(self, now, **fields):
        self.next_progress = now + PROGRESS_SECONDS
        self.send("progress", may_be_lost=True, **fields)

    # Fits

    def enter(self, fit):
        self.flush()
        self.fits.append(fit)
        if self.tracker is not None and len(self.fits) == 1:
            self.tracker.restart()
        self.announce(fit.source, fit.unit_name, clock(), of=fit.total, batch_size=fit.batch_size)

    def leave(self, fit):
        self.flush()
        if fit in self.fits:
            self.fits.remove(fit)
        if self.tracker is not None and not self.fits:
            self.tracker.restart()

    def base_for(self, number):
        """What is added to the numbers of a fit whose first one is given. A fit that counts on from
        the previous one keeps its numbers, and one that starts again continues the count."""
        return 0 if number > self.highest else self.highest

    # Measurements

    def value(self, name, value):
        """A value that the script gave to a logger."""
        number = _names.number_of(value)
        if number is not None:
            self._values.append((clock(), str(name), number))

    def values_between(self, begin, end):
        """The last value of each name, as (name, value) in the order of their first appearance."""
        return list({name: value for at, name, value in list(self._values)
                     if begin < at <= end}.items())

    def saved(self, begin, end):
        self._saves.append((begin, end))

    def saves_between(self, begin, end):
        return sum(e - b for b, e in list(self._saves) if b >= begin and e <= end) or None

    def measured_since(self, began):
        measured = {"save": self.saves_between(began, clock())}
        if self.tracker is not None:
            measured.update(self.tracker.measured())
        return measured

    @_guard.quietly
    def finish(self):
        """The process ends."""
        if self._is_finished or self._pid != os.getpid():
            return
        self._is_finished = True
        error = getattr(sys, "last_value", None)
        self.report_held()
        if self.tracker is not None:
            self.tracker.finish(error is not None)
        self.flush()
        if self._has_said_hello:
            self.send("end", units=self.highest, dropped=self._channel.dropped or None,
                      error=type(error).__name__ if error is not None else None)
            self._channel.flush(0.5)


def _memory():
    """Peak memory: of the devices that this process uses, or else of the process."""
    cuda = sys.modules.get("torch.cuda")
    found = {}
    try:
        if cuda is not None and cuda.is_initialized():
            devices = [cuda.memory_stats(i) for i in range(cuda.device_count())]
            used = [d for d in devices if d.get("allocated_bytes.all.peak")]
            found = {
                "devices": len(used), "device": cuda.get_device_name(),
                "gpu_peak_allocated": max(d["allocated_bytes.all.peak"] for d in used),
                "gpu_peak_reserved": max(d["reserved_bytes.all.peak"] for d in used),
                "gpu_ooms": sum(d.get("num_ooms", 0) for d in used) or None,
            }
    except Exception:
        found = {}
    try:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found["rss_peak"] = peak if sys.platform == "darwin" else peak * 1024
    except ImportError:
        pass
    return {k: v for k, v in found.items() if v is not None}


def _flush_before_exit(session):
    """os._exit runs no atexit functions."""
    if getattr(os._exit, "_courier_patched", False):
        return
    original = os._exit

    def _exit(status):
        session.finish()
        return original(status)

    _exit._courier_patched = True
    os._exit = _exit


_session = None


def session():
    global _session
    if _session is None:
        _session = Session()
    return _session
