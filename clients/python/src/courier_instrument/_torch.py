"""PyTorch: passes over data loaders, steps of optimizers, and checkpoints. Steps that other frameworks
make in the script's own loop count, too."""

import functools
import itertools
import os
import sys
import weakref

from . import _loop
from ._guard import failed, observe, quietly
from ._passes import Loader, Tracker
from ._session import clock, session

PROGRESS_SECONDS = 1.0  # at least, between two messages

_serials = itertools.count(1)


def tracker():
    if session().tracker is None:
        session().tracker = Torch(session())
    return session().tracker


class Torch(Tracker):
    """The Tracker of this process, which reports its units."""

    source, unit_name, total = "torch", "epoch", None

    def __init__(self, owner):
        self._session = owner
        self._has_begun = self.has_steps = False
        self._next_progress = 0.0
        self.open = []
        self.restart()

    def restart(self):
        """Forgets the current unit: a framework has taken over, or this is a new process."""
        kept = [p for p in self.open if not p.steps]  # a framework may have begun its first pass
        super().__init__(self._report, self._announce)
        self.open += kept
        self._loop = _loop.Position()
        self._base, self._skipped = None, 0
        self._batch_size = None  # of steps without a loader

    def begin_pass(self, loader, now):
        self._loop.searches = 0  # the loop may begin here
        is_known = self.unit is not None and self.unit.position is not None
        p = self.begin(loader, now, self._loop.read() if is_known else None)
        if _loop.is_trial():
            self.open.remove(p)  # its steps are not credited
        p.asked = clock()  # starting workers takes time
        return p

    def step(self, optimizer, now, batch_size=None):
        if not self.has_steps and self.unit is not None:
            self.unit.optimizers.clear()  # of the steps that backward has counted
        self.has_steps, self._batch_size = True, batch_size or self._batch_size
        self._step(id(optimizer), now)

    def _step(self, optimizer, now):
        began, unit = self._boundary, self.unit
        super().step(optimizer, now, None if self._session.fits else self._loop.read())
        if self.unit is not unit and not (self.unit and self.unit.passes):
            self._batch_size = self._batch_size or _loop.batch_size()
        has_epochs = self.unit is not None and not self._loop.counts_steps
        if not has_epochs and not self._has_begun and not self._session.fits:
            # A loop over steps. Its epochs, if it has any, are those of the output.
            self._session.send("loop", ago=now - (began or now), batch_size=_loop.batch_size())
        self._has_begun = True
        if now >= self._next_progress and has_epochs and self.unit.main is not None:
            self._next_progress = now + PROGRESS_SECONDS
            self._session.send("progress", may_be_lost=True, batches=self.unit.batches,
                               of=self.unit.main.loader.length)

    def backward(self):
        """Gradients were computed. Until an optimizer makes a step, this counts as one within the script's
        loop over epochs: some scripts update by hand, and some steps are in graphs of torch.compile."""
        if self.has_steps or self._session.fits or _is_traced():
            return
        if self._loop.read() is not None:
            self._step(None, clock())

    def saved(self, began):
        self._session.saved(began)
        if self.unit is not None and self.unit.position is not None and self._loop.read() == self.unit.position:
            self.unit.saved = clock()

    def _announce(self, unit):
        if unit.number == 1 + self._skipped and not (self._session.fits or self._loop.counts_steps):
            self._base = self._session.base_for(1) + self._done_before(unit.position)
            self._session.announce(unit.began)

    def _done_before(self, position):
        """The epochs before the first one of this process."""
        if position is None:
            done = os.environ.get("COURIER_EPOCHS_DONE", "")
            return int(done) if done.isdigit() else 0
        first, from_one = position[0], self._loop.loop.counts_from
        if from_one is None:  # not over a range
            return first if first > 1 else 0
        return max(0, first - from_one)

    @quietly
    def _report(self, unit):
        if self._session.fits or self._loop.counts_steps or unit.is_partial:
            return
        if unit.position is None and unit.number == 1 + self._skipped and self.is_in_loop():
            self._skipped += 1  # a warm-up before the script's loop over epochs
            return
        fields = dict(_measured(unit), **self._session.logged_between(unit.began, unit.until))
        fields.setdefault("batch_size", self._batch_size)
        fields.update(evaluation=unit.evaluation_seconds or None, loop=unit.position is not None or None)
        number = (self._base or 0) + unit.number - self._skipped
        self._session.unit(self, number, unit.began, unit.ended, fields)

    def measured(self):
        """What the passes show about the current unit of a framework."""
        return _measured(self.unit) if self.unit is not None else {}


def _measured(unit):
    """The figures of the passes of a unit; none without a loader."""
    if not unit.passes:
        return {}
    sizes = {p.loader.batch_size for p in unit.passes}  # several loaders have none in common
    return {"batches": unit.batches, "steps": unit.steps, "wait": unit.wait,
            "batch_size": sizes.pop() if len(sizes) == 1 else None}


def loaders(module):
    loop = tracker()
    kinds = getattr(module, "_DatasetKind", None)

    def created(call):
        call.args[0]._courier = (next(_serials), clock())

    def asked(call):
        call.note = clock()

    def begin(iterator, loader, began):
        cell = iterator.__dict__.get("_courier_pass")
        if cell is None:
            cell = iterator._courier_pass = [None]
            # The finalizer refers to the cell, not to the iterator, which it would keep alive.
            weakref.finalize(iterator, ended, cell, "abandoned").atexit = False
        else:
            loop.end(cell[0], "abandoned", began)  # an iterator of persistent workers begins again
        cell[0] = loop.begin_pass(loader, began)
        return cell

    def iterated(call):
        begin(call.result, _describe(call.args[0], kinds), call.note)

    @quietly
    def ended(cell, how):
        loop.end(cell[0], how, clock())

    observe(module.DataLoader, "__init__", after=created)
    # Subclasses with an __iter__ of their own reach this one through super().
    observe(module.DataLoader, "__iter__", before=asked, after=iterated)

    owner = module._BaseDataLoaderIter
    original = owner.__next__

    def __next__(self):  # not observe(): this runs at every batch
        cell, began = self.__dict__.get("_courier_pass"), clock()
        try:
            batch = original(self)
        except StopIteration:
            if cell is not None:
                ended(cell, "exhausted")
            raise
        try:
            if cell is None:  # the iterator of a loader that is no DataLoader, as in fastai
                cell = begin(self, Loader(next(_serials)), began)
            p = cell[0] = loop.deliver(cell[0], began, clock())
            if p.batches == 1 and p.loader.batch_size is None:
                p.loader.batch_size = _first_dimension(batch)
        except Exception as error:
            failed("deliver", error)
        return batch

    if getattr(original, "__module__", None) != __name__:  # the module was loaded again
        __next__.__wrapped__ = original
        owner.__next__ = __next__


def _describe(loader, kinds):
    """The Loader of a DataLoader.

    The length of a loader over an iterable dataset is not asked for: PyTorch would remember the answer,
    and warn if the dataset delivers more.
    """
    serial, created = loader.__dict__.get("_courier", (id(loader), 0.0))
    length = None
    if kinds is None or getattr(loader, "_dataset_kind", None) == kinds.Map:
        try:
            length = len(loader)
        except Exception:
            pass  # a sampler without a length
    return Loader(serial, created, length, loader.batch_size)


def _first_dimension(batch, depth=0):
    """The length of the first tensor in a batch."""
    shape = getattr(batch, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    items = list(batch.values()) if isinstance(batch, dict) else batch
    if depth < 3 and isinstance(items, (list, tuple)):
        return next(filter(None, (_first_dimension(item, depth + 1) for item in items[:4])), None)
    return None


def optimizers(module):
    loop = tracker()

    def stepped(optimizer, *_):
        if _is_traced():
            return
        try:  # not quietly(): this runs at every step
            loop.step(optimizer, clock())
        except Exception as error:
            failed("step", error)

    gradients(module.Optimizer)
    tensor = sys.modules["torch"].Tensor
    original, computed = tensor.backward, quietly(loop.backward)

    @functools.wraps(original)
    def backward(*args, **kwargs):  # not observe(): this runs at every step
        result = original(*args, **kwargs)
        if not loop.has_steps:
            computed()
        return result

    tensor.backward = backward
    module.register_optimizer_step_post_hook(stepped)


def gradients(owner):
    """Observes where gradients are set to zero: in an optimizer, or in modules."""
    def cleared(call):
        if not _is_traced():
            tracker().cleared(clock())

    observe(getattr(owner, "Module", owner), "zero_grad", before=cleared)


def _is_traced():
    """Whether torch.compile is tracing the caller. It then leaves the hook out of its graph."""
    is_compiling = getattr(getattr(sys.modules["torch"], "compiler", None), "is_compiling", None)
    return is_compiling is not None and is_compiling()


def saving(module):
    def began(call):
        call.note = clock()

    for name in ("save", "save_file"):
        observe(module, name, before=began, after=lambda call: tracker().saved(call.note))


def traces(module):
    """Nothing in Python runs at each step of a compiled function of JAX. The first one is traced, which
    shows when the script's loop over epochs began; its epochs are those of the output."""
    position, size = _loop.Position(), None

    def traced(call):
        nonlocal size
        began, position.searches = clock(), 0  # each function is traced once
        if (position.loop is None or size is None) and not session().fits and position.read() is not None:
            size = _loop.batch_size()
            session().send("loop", ago=clock() - began, batch_size=size)

    observe(module, "_infer_params", before=traced)
