"""PyTorch: passes over data loaders, steps of optimizers, checkpoints, and memory of devices."""

import itertools
import os
import sys
import weakref

from . import _loop, _names
from ._guard import Depth, around, failed, patch, quietly
from ._passes import Loader, Tracker
from ._session import clock, session

HIDDEN_AFTER = 4  # batches with zero_grad and without a step

_serials = itertools.count(1)
_installed = None


def tracker():
    global _installed
    if _installed is None:
        _installed = Torch(session())
        session().tracker = _installed
    return _installed


class Torch:
    """Connects a Tracker to PyTorch, and reports its units."""

    source, unit_name, total = "torch", "epoch", None
    _passes = None  # until the first restart

    def __init__(self, owner):
        self._session = owner
        self._hidden_steps, self._cleared, self._cleared_at = False, 0, None
        self._has_steps = False
        self.restart()

    def restart(self):
        """Forgets the current unit: a framework has taken over, or this is a new process."""
        kept = [p for p in self._passes.open if not p.steps] if self._passes else []
        self._passes = Tracker(self._unit, self._began)
        self._passes.open.extend(kept)  # a framework may have begun its first pass
        self.deliver, self.end, self._step = self._passes.deliver, self._passes.end, self._passes.step
        self._position = _loop.Position()
        self._base, self._skipped = None, 0
        self._batch_size = None  # of steps without a loader

    def begin(self, loader, now):
        self._position.searches = 0  # the loop may begin here
        unit = self._passes.unit
        is_known = unit is not None and unit.position is not None
        return self._passes.begin(loader, now, self._position.read() if is_known else None)

    def step(self, optimizer, now, batch_size=None):
        self._has_steps = True
        if batch_size is not None:
            self._batch_size = batch_size
        self._step(id(optimizer), now, None if self._session.fits else self._position.read())
        if now >= self._session.next_progress:
            self.report_progress(now)

    def cleared(self, optimizer, now=None):
        """Gradients are set to zero. If that happens at several batches and no step is seen, the steps
        are in graphs of torch.compile, and this counts instead."""
        if self._has_steps and not self._hidden_steps or optimizer is None:
            self._passes.cleared(now or clock())
            return
        if not self._hidden_steps:
            last = max((p.last for p in self._passes.open), default=None)
            if last is None:
                self._passes.cleared(clock())
            if last is None or last == self._cleared_at:
                return
            self._cleared_at = last
            self._cleared += 1
            if self._cleared < HIDDEN_AFTER:
                return
            self._hidden_steps = True
        self.step(optimizer, clock())

    @quietly
    def report_progress(self, now):
        """At most once in a second, from a step of an optimizer."""
        unit = self._passes.unit
        if unit is None or unit.main is None:
            self._session.next_progress = now + 1
            return
        number = self._session.highest + 1 if self._session.fits else self._number(unit)
        self._session.progress(now, unit=number, batches=unit.batches, of=unit.main.loader.length)

    def _began(self, unit):
        if unit.number > 1 + self._skipped or self._session.fits:
            return
        self._base = self._session.base_for(1) + self._done(unit.position)
        loader = unit.main.loader if unit.main else None
        self._session.announce("torch", "epoch", unit.began,
                               batch_size=loader.batch_size if loader else self._batch_size)

    def _done(self, position):
        """The epochs before the first one of this process."""
        if position is None:
            done = os.environ.get("COURIER_EPOCHS_DONE", "")
            return int(done) if done.isdigit() else 0
        first, from_one = position[0], self._position.loop.counts_from
        if from_one is None:  # not over a range
            return first if first > 1 else 0
        return max(0, first - from_one)

    def _number(self, unit):
        return (self._base or 0) + unit.number - self._skipped

    @quietly
    def _unit(self, unit):
        if self._session.fits:
            return
        if unit.position is None and unit.number == 1 + self._skipped and self._passes.is_in_loop():
            self._skipped += 1  # a warm-up before the script's loop over epochs
            return
        main = unit.main
        fields = {"train": unit.trained - unit.began - unit.nested,
                  "evaluation": unit.evaluation_seconds or None, "steps": unit.steps,
                  "loop": unit.position is not None or None, "batch_size": self._batch_size,
                  "save": self._session.saves_between(unit.began, unit.until)}
        if main is not None:
            fields.update(wait=unit.wait, first=main.first, batches=unit.batches,
                          batch_size=main.loader.batch_size, samples=_samples(main))
        fields.update(_names.pick(self._session.values_between(unit.began, unit.until)))
        if unit.is_partial:
            self._session.flush()
            self._session.send("partial", unit=self._number(unit), **fields)
            return
        self._session.unit(self, self._number(unit), unit.began, unit.ended, fields)

    def measured(self):
        """What the passes show about the current unit of a framework."""
        unit = self._passes.unit
        if unit is None or unit.main is None:
            return {}
        return {"batches": unit.batches, "steps": unit.steps, "wait": unit.wait,
                "first": unit.main.first, "samples": _samples(unit.main)}

    def finish(self, is_error):
        self._passes.finish(clock(), is_error)


def _samples(p):
    """Samples of a pass: exact for a full pass over a sized dataset, otherwise by the batch size."""
    size, loader = p.loader.batch_size, p.loader
    if not size:
        return None
    counted = p.batches * size
    return min(counted, loader.samples) if loader.samples else counted


def loaders(module):
    """torch.utils.data.dataloader"""
    loop = tracker()
    base = module._BaseDataLoaderIter
    iterable = getattr(module, "_DatasetKind", None)

    def created(args, kwargs, result, note):
        args[0]._courier = (next(_serials), clock())

    patch(module.DataLoader, "__init__", around(after=created))

    def asked(args, kwargs):
        return clock()

    def iterated(args, kwargs, iterator, now):
        loader = args[0]
        cell = iterator.__dict__.get("_courier_pass")
        if cell is not None:
            loop.end(cell[0], "abandoned", now)  # an iterator of persistent workers begins again
            cell[0] = loop.begin(_describe(loader, iterable), now)
            return
        # The finalizer refers to the cell, not to the iterator, which it would keep alive.
        cell = iterator._courier_pass = [loop.begin(_describe(loader, iterable), now)]
        weakref.finalize(iterator, _released, loop, cell).atexit = False

    # Subclasses with an __iter__ of their own reach this one through super().
    patch(module.DataLoader, "__iter__", around(asked, iterated))

    def make_next(original):
        def __next__(self):
            cell = self.__dict__.get("_courier_pass")
            if cell is None:
                return original(self)
            began = clock()
            try:
                batch = original(self)
            except StopIteration:
                ended(cell[0])
                raise
            try:
                p = cell[0]
                cell[0] = loop.deliver(p, began, clock())
                if p.batches == 1 and p.loader.batch_size is None:
                    p.loader.batch_size = _first_dimension(batch)
            except Exception as error:
                del self._courier_pass
                failed("deliver", error)
            return batch

        return __next__

    @quietly
    def ended(p):
        loop.end(p, "exhausted", clock())

    patch(base, "__next__", make_next)


@quietly
def _released(loop, cell):
    loop.end(cell[0], "abandoned", clock())


def _describe(loader, kinds):
    """The Loader of a DataLoader.

    The length of a loader over an iterable dataset is not asked for: PyTorch would remember the answer,
    and warn if the dataset delivers more.
    """
    serial, created = loader.__dict__.get("_courier", (id(loader), 0.0))
    length = samples = None
    sized = kinds is None or getattr(loader, "_dataset_kind", None) == kinds.Map
    if sized:
        try:
            length = len(loader)
        except Exception:
            pass  # a sampler without a length
        try:
            samples = len(loader.sampler if loader.batch_size else loader.dataset)
        except Exception:
            pass
    return Loader(serial, created, length, loader.batch_size, samples)


def _first_dimension(batch, depth=0):
    """The length of the first tensor in a batch."""
    shape = getattr(batch, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    if depth < 3 and isinstance(batch, dict):
        batch = list(batch.values())[:4]
    if depth < 3 and isinstance(batch, (list, tuple)):
        for item in batch[:4]:
            found = _first_dimension(item, depth + 1)
            if found:
                return found
    return None


def optimizers(module):
    """torch.optim.optimizer"""
    loop = tracker()

    def stepped(optimizer, args, kwargs):
        if _is_traced():
            return
        try:  # not quietly(): this runs at every step
            loop.step(optimizer, clock())
        except Exception as error:
            failed("step", error)

    def make_zero_grad(original):
        cleared = quietly(loop.cleared)

        def zero_grad(self, *args, **kwargs):
            if not _is_traced():
                cleared(self)
            return original(self, *args, **kwargs)

        return zero_grad

    patch(module.Optimizer, "zero_grad", make_zero_grad)
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is not None:
        register(stepped)
        return

    # PyTorch 1: wrap the step of each class, as soon as there is an optimizer of it.
    def created(args, kwargs, result, note):
        for cls in type(args[0]).__mro__:
            if "step" in vars(cls) and cls is not module.Optimizer:
                patch(cls, "step", around(after=lambda a, k, r, n: stepped(a[0], a[1:], k)))
                break

    patch(module.Optimizer, "__init__", around(after=created))


def _is_traced():
    """Whether torch.compile is tracing the caller. It then leaves the hook out of its graph."""
    compiler = getattr(sys.modules["torch"], "compiler", None)
    is_compiling = getattr(compiler, "is_compiling", None)
    return is_compiling is not None and is_compiling()


def traces(module):
    """jax._src.pjit: nothing in Python runs at each step of a compiled function. The first one is traced,
    which shows when the script's loop over epochs began; its epochs are those of the output."""
    position = _loop.Position()

    def traced(args, kwargs):
        if position.loop is None and not session().fits and position.read() is not None:
            session().send("loop", ago=0.0)

    patch(module, "_run_python_pjit", around(before=traced))


_saving = Depth()


def saving(module):
    """torch.serialization"""
    patch(module, "save", _timed)


def safetensors(module):
    """safetensors.torch"""
    patch(module, "save_file", _timed)


def _timed(original):
    @quietly
    def saved(began):
        session().saved(began, clock())

    def save(*args, **kwargs):
        with _saving as depth:
            began = clock()
            result = original(*args, **kwargs)
            if depth == 1:
                saved(began)
            return result

    return save
