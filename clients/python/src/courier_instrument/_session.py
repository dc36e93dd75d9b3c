"""What this process reports: fits, units, progress, and the end.

There is one session in each process. It is created when the first framework is imported, and opens
the channel when there is something to report, so that processes without a training stay silent.
"""

import atexit
import collections
import math
import os
import resource
import sys
import time

from . import _guard
from ._channel import Channel

BLOCK_SECONDS = 0.2  # rounds, and units shorter than SHORT_SECONDS, are reported in blocks
SHORT_SECONDS = 0.05
MAX_VALUES = 1000  # logged values that are kept for the unit in which they were logged
MAX_NAMES = 200  # of values in a message
RANKS = "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK", "LOCAL_RANK"

clock = time.perf_counter


class Fit:
    """A training whose epochs or rounds are known. While that of a framework is active, the epochs
    that loaders and optimizers show are not reported: they are the same ones."""

    def __init__(self, source, total=None, unit="epoch", batch_size=None):
        self.source, self.unit_name, self.total, self.batch_size = source, unit, total, batch_size
        self.last = 0  # number of the last unit
        self.evaluation = 0.0  # seconds of the unit
        self._held = None  # (number, measured) of a unit whose end is not known yet
        self._base = None
        self._values = []
        session().enter(self)
        self._began = clock()

    def begin_unit(self):
        """A unit begins now. Without this call it begins where the previous one ended."""
        self.report()
        self._began, self.evaluation = clock(), 0.0

    def log(self, values):
        self._values += [(str(k), number_of(v)) for k, v in (values or {}).items()]

    def unit(self, number, values=None, is_held=False, **measured):
        """A unit with the script's number, from 1, has ended, or its end will follow: that of the training, or
        the begin of the next unit."""
        self.last = number
        self.log(values)
        seen = session().tracker.take() if session().tracker else {}
        self._held = number, dict(seen, batch_size=self.batch_size, **measured)
        if not is_held:
            self.report()

    def report(self):
        """The unit whose end was not known ends now."""
        if self._held is None:
            return
        (number, measured), self._held, ended = self._held, None, clock()
        if self._base is None:
            self._base = session().base_for(number)
        measured.update(session().logged_between(self._began, ended, self._values),
                        evaluation=self.evaluation or None)
        session().unit(self, self._base + number, self._began, ended, measured)
        self._began, self._values, self.evaluation = ended, [], 0.0


class Session:
    def __init__(self):
        self.fit = None  # that of a framework, while it is active
        self.tracker = None  # set by _torch
        self._channel = Channel(os.environ.get("COURIER_INSTRUMENT_CHANNEL", ""))
        self._reset()
        atexit.register(self.finish)
        os.register_at_fork(after_in_child=self._after_fork)

    def _reset(self):
        self.highest = 0  # number of the last unit
        self._block = None  # (fit, number, begin, count, end, fields) of units that wait
        self._has_begun = self._is_finished = False
        self._values = collections.deque(maxlen=MAX_VALUES)  # (time, name, value)
        self._saves = collections.deque(maxlen=100)  # (end, seconds)
        self._evaluation = 0.0  # when it began
        self._group = None  # rank and number of processes; known after the group is destroyed, too
        self._pid = os.getpid()

    @_guard.quietly
    def _after_fork(self):
        """A child starts without fits. It may be a worker of a loader, or train itself."""
        self._channel.after_fork()
        self.fit = None
        self._reset()
        self._restart()
        util = sys.modules.get("multiprocessing.util")
        if util is not None:  # its children do not run atexit
            util.Finalize(None, self.finish, exitpriority=-10)

    def _restart(self):
        if self.tracker is not None:
            self.tracker.restart()

    # Messages

    def send(self, kind, may_be_lost=False, **fields):
        if self._ranks()[0] != 0:
            return
        if not self._has_begun:
            self._has_begun = True
            _guard.observe(os, "_exit", before=lambda call: session().finish())  # which skips atexit
        message = {"type": kind}
        message.update((k, round(v, 6) if isinstance(v, float) else v)
                       for k, v in fields.items() if v is not None)
        self._channel.send(message, may_be_lost)

    def _ranks(self):
        """The rank of this process among those that train together, and their number, where known. A
        launcher may set the rank only after the start."""
        try:
            distributed = sys.modules["torch.distributed"]
            if distributed.is_available() and distributed.is_initialized():
                self._group = distributed.get_rank(), distributed.get_world_size()
        except Exception:  # it is not imported, or only in part
            pass
        if self._group is not None:
            return self._group
        has_tasks = os.environ.get("SLURM_NTASKS", "1") != "1"
        ranks = [os.environ.get(name, "") for name in RANKS + ("SLURM_PROCID",) * has_tasks]
        return next((int(rank) for rank in ranks if rank.isdigit()), 0), None

    def announce(self, began):
        """A training has begun."""
        self.send("fit", ago=clock() - began, world=self._ranks()[1])

    def unit(self, fit, number, began, ended, fields):
        """A unit has ended. Short ones wait for others, and are then reported as a block."""
        self.highest = max(self.highest, number)
        first, count = began, 1
        if self._block is not None and self._block[:2] == (fit, number - 1):
            first, count = self._block[2], self._block[3] + 1
        else:
            self.flush()
        self._block = fit, number, first, count, ended, fields
        is_short = fit.unit_name == "round" or ended - began < SHORT_SECONDS
        if not is_short or ended - first >= BLOCK_SECONDS or number in (1, fit.total):
            self.flush()

    def flush(self):
        """Reports the units that wait."""
        if self._block is None:
            return
        (fit, number, began, count, ended, fields), self._block = self._block, None
        self.send("unit", epoch=number, count=count, seconds=(ended - began) / count,
                  ago=clock() - ended, source=fit.source, unit=fit.unit_name, **fields, **_memory())

    # Fits

    def enter(self, fit):
        self.flush()
        if self.fit is None:
            self._restart()
        self.fit = fit
        self.announce(clock())

    def end_fit(self):
        if self.fit is not None:
            self.fit.report()
        self.flush()
        self.fit = None
        self._restart()

    def base_for(self, number):
        """What is added to the numbers of a fit whose first one is given. A fit that counts on from
        the previous one keeps its numbers, and one that starts again continues the count."""
        return 0 if number > self.highest else self.highest

    def evaluates(self):
        self._evaluation = clock()

    def evaluated(self, values=()):
        """An evaluation has ended. Its values are known if the script has called it."""
        if self.fit is not None:
            self.fit.evaluation += clock() - self._evaluation
        elif self.tracker is not None:
            self.tracker.evaluated(self._evaluation)
            for name in values:
                self.value(name, values[name])

    # What the script logs and saves

    def value(self, name, value):
        number = number_of(value)
        if number is not None:
            self._values.append((clock(), str(name), number))

    def saved(self, began):
        self._saves.append((clock(), clock() - began))

    def logged_between(self, begin, end, values=()):
        """The seconds of checkpoints, and the last value of each name. The runner finds the loss and the
        metric among them."""
        saves = sum(seconds for at, seconds in tuple(self._saves) if begin < at <= end)
        logged = [(name, value) for at, name, value in tuple(self._values) if begin < at <= end]
        named = {name[:60]: value for name, value in [*values, *logged] if value is not None}
        return {"values": dict(list(named.items())[:MAX_NAMES]) or None, "save": saves or None}

    @_guard.quietly
    def finish(self):
        """The process ends."""
        if self._is_finished or self._pid != os.getpid():
            return
        self._is_finished = True
        if self.tracker is not None:
            self.tracker.finish(clock(), getattr(sys, "last_value", None) is not None)
        self.flush()
        if self._has_begun:
            self.send("end")
            self._channel.flush(0.5)


def number_of(value):
    """A finite number, or None. A tensor on a device is not read: that would wait for the device."""
    device = getattr(value, "device", None)
    kind = getattr(device, "type", None) or getattr(device, "platform", None) or device
    if kind not in (None, "cpu") or isinstance(value, (str, bytes)):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    return number if math.isfinite(number) else None


def _memory():
    """Peak memory: of the devices that this process uses, and of the process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {"rss_peak": peak if sys.platform == "darwin" else peak * 1024}
    try:
        cuda = sys.modules["torch.cuda"]
        if cuda.is_initialized():
            devices = [cuda.memory_stats(i) for i in range(cuda.device_count())]
            used = [d for d in devices if d.get("allocated_bytes.all.peak")]
            found.update(devices=len(used), device=cuda.get_device_name(),
                         gpu_peak_allocated=max(d["allocated_bytes.all.peak"] for d in used))
    except Exception:  # it is not imported, or nothing was used
        pass
    return found


_session = None


def session():
    global _session
    if _session is None:
        _session = Session()
    return _session
