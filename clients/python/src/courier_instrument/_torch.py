"""PyTorch: passes over data loaders, steps of optimizers, and checkpoints. Steps that other frameworks
make in the script's own loop count, too."""

import functools
import itertools
import os
import sys
import threading
import weakref

from . import _loop
from ._guard import failed, observe, quietly
from ._passes import Loader, Tracker
from ._session import clock, session

PROGRESS_SECONDS = 1.0  # at least, between two messages
MEASURED = 8  # batches of a pass whose size is not known
FIT = 0, "of a framework"  # the position while a framework trains

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
        self.has_steps = self.has_optimizer = False
        self._first, self._count = None, 0  # the time of the first step of all, and their number
        self._next_progress = 0.0
        self.open = []
        self.restart()

    def restart(self):
        """Forgets the current unit: a framework has taken over, or this is a new process."""
        kept = self.open  # a framework may have begun its first pass
        super().__init__(self._report, self._announce)
        self.open = kept
        self._loop = _loop.Position()
        self._base = 0  # epochs before the first one of this process
        self._number, self._counted = 0, None  # of the last unit that counts, and that
        self._batch_size = None  # of steps without a loader

    def position(self, is_step=False):
        if self._session.fit:
            return FIT
        thread = threading.get_ident()
        if self.unit is None or self.unit.position is None:
            self._thread = thread
        if thread != self._thread:  # that thread is not in the loop
            return self.unit.position
        return self._loop.read(is_step)

    def here(self, search=False, now=None):
        """Something happens that tells where the script is in its loop."""
        if search:
            self._loop.searches = 0  # the loop may begin here
        position = self.position()
        self.at(position, now or clock())
        return position

    def fit_is_step(self, owner, total, batch_size, began):
        """A framework begins to fit a model. Whether that is a step of the script's loop over epochs or rounds,
        instead of a training: a single epoch in any other loop may be a part of one, too."""
        self._session.fit = None  # another one has failed
        if self.here(True, began) is None and not (total == 1 and self._loop.is_in_loop):
            return False
        self._batch_size = batch_size or self._batch_size
        self._step(id(owner), clock())
        return True

    def begin_pass(self, loader, now):
        self._loop.searches = 0
        return self.begin(loader, now, self.position())

    def step(self, optimizer, now, batch_size=None):
        if not self.has_steps and self.unit is not None:
            self.unit.optimizers.clear()  # of the steps that backward has counted
        self.has_steps = True
        if self.unit is None or not self.unit.steps:  # the last one may be smaller
            self._batch_size = batch_size or self._batch_size
        self._step(id(optimizer), now)

    def _step(self, optimizer, now):
        super().step(optimizer, now, self.position(is_step=True))
        unit = self.unit
        self._first, self._count = self._first or now, self._count + 1
        if self._count == 2 and not self._is_epoch(unit):
            # A loop over steps. Its epochs, if it has any, are those of the output.
            self._session.send("loop", ago=now - self._first, batch_size=_loop.batch_size())
        elif unit is not None and not unit.loaders and unit.steps == 1:
            if not self._batch_size and not self._number:  # the first epoch decides for all
                self._batch_size = _loop.batch_size() or None
        if now >= self._next_progress and unit is not None and unit.length and not unit.is_partial:
            self._next_progress = now + PROGRESS_SECONDS
            self._session.send("progress", may_be_lost=True, batches=unit.batches, of=unit.length)

    def backward(self):
        """Gradients were computed. Until an optimizer makes a step, this counts as one within the script's
        loop over epochs: some scripts update by hand, and some steps are in graphs of torch.compile."""
        if self.has_steps:
            for p in self.open:
                p.gradients += p.fresh > 0
        elif not self._session.fit and self.position() is not None:
            self._step(None, clock())

    def _end_last(self, unit, before, *args):
        super()._end_last(unit, before, *args)
        # A single epoch without a step of an existing optimizer has only tried a batch.
        unit.is_partial |= before is None and self.has_optimizer and set(unit.optimizers) == {None}
        self.has_steps = False  # another loop may update in another way

    def cleared(self):
        """Gradients are set to zero. With a loader, its batches show the same."""
        for p in self.open:
            if p.fresh:
                return
        self._first = self._first or clock()
        self.here()

    def saved(self, began):
        self._session.saved(began)
        self.here()

    def evaluated(self, began):
        """The script has evaluated a model of a framework."""
        if self.here() is not None:
            self.unit.evaluations.append((began, clock()))

    def _is_epoch(self, unit):
        return unit is not None and not (self._session.fit or unit.position is None and self._loop.counts_steps)

    def _announce(self, unit):
        unit.loop = unit.position and self._loop.loop
        unit.is_partial |= self._is_other(unit)
        if not self._number and self._is_epoch(unit):
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
        if unit.is_partial or not self._is_epoch(unit):
            return
        self._number, self._counted = self._number + 1, unit
        fields = dict(_measured(unit), **self._session.logged_between(unit.began, unit.until))
        fields.setdefault("batch_size", self._batch_size)
        fields.update(evaluation=sum(e - b for b, e in unit.evaluations) or None,
                      loop=unit.position is not None or None)
        self._session.unit(self, self._base + self._number, unit.began, unit.ended, fields)

    def _is_other(self, unit):
        """Whether a unit is of another training than the units that count: in another loop, with other loaders and
        optimizers. A second phase of a training has one of them in common."""
        before = self._counted
        return bool(before and unit.loop is not before.loop and before.loaders and unit.loaders
                    and before.loaders.keys().isdisjoint(unit.loaders)
                    and before.optimizers.keys().isdisjoint(unit.optimizers))

    def take(self):
        """What the passes show about the unit of a framework that ends now."""
        unit, self.unit = self.unit, None
        return _measured(unit) if unit is not None else {}


def _measured(unit):
    """The figures of the passes of a unit; none without a loader."""
    if not unit.loaders:
        return {}
    return {"batches": unit.batches, "steps": unit.steps, "wait": unit.wait, "batch_size": unit.batch_size}


def loaders(module):
    loop = tracker()

    def created(call):
        call.args[0]._courier = (next(_serials), clock())
        loop.here(search=True)

    def asked(call):
        call.note = clock()

    def begin(iterator, loader, began):
        old = iterator.__dict__.get("_courier_pass")
        if old is not None:
            loop.end(old, False, began)  # an iterator of persistent workers begins again
        p = iterator._courier_pass = loop.begin_pass(loader, began)
        weakref.finalize(iterator, left, p).atexit = False
        return p

    def iterated(call):
        begin(call.result, _describe(call.args[0]), call.note)

    left = quietly(lambda p: loop.end(p, False, clock()))
    exhausted = quietly(lambda p: loop.end(p, True, clock()))

    observe(module.DataLoader, "__init__", after=created)
    # Subclasses with an __iter__ of their own reach this one through super().
    observe(module.DataLoader, "__iter__", before=asked, after=iterated)

    def created_iterator(call):  # one without an __iter__ of ours: it may be endless
        call.result._courier_loader = _describe(call.args[0])

    observe(module.DataLoader, "_get_iterator", after=created_iterator)

    owner = module._BaseDataLoaderIter
    original = owner.__next__

    def __next__(self):  # not observe(): this runs at every batch
        p, began = self.__dict__.get("_courier_pass"), clock()
        try:
            batch = original(self)
        except StopIteration:
            if p is not None:
                exhausted(p)
            raise
        try:
            if p is None:  # perhaps the iterator of a loader that is no DataLoader, as in fastai
                p = begin(self, self.__dict__.get("_courier_loader") or Loader(next(_serials)), began)
            elif p.batches == p.loader.length:  # it is endless, as in ultralytics
                exhausted(p)
                p = begin(self, p.loader, began)
            loop.deliver(p, began, clock())
            if p.loader.sizes is not None and p.batches <= MEASURED and (
                    p.batches == 1 or p.batches != p.loader.length):  # the last one may be smaller
                p.loader.measure(_first_dimension(batch))
        except Exception as error:
            failed("deliver", error)
        return batch

    if getattr(original, "__module__", None) != __name__:  # the module was loaded again
        __next__.__wrapped__ = original
        owner.__next__ = __next__


def _describe(loader):
    """The Loader of a DataLoader. That over an iterable dataset is not asked for its length: PyTorch would
    remember the answer, and warn if the dataset delivers more."""
    serial, created = loader.__dict__.get("_courier", (id(loader), 0.0))
    length, size = None, loader.batch_size or getattr(loader.batch_sampler, "batch_size", None)
    if getattr(loader, "_dataset_kind", 0) == 0:  # _DatasetKind.Map
        try:
            length = len(loader)
        except Exception:
            pass  # a sampler without a length
    return Loader(serial, created, length, size if type(size) is int and length != 1 else None)  # it may be smaller


def _first_dimension(batch):
    """The first dimension that all tensors of a batch have in common."""
    items = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else [batch]
    sizes = {tuple(getattr(item, "shape", None) or (None,))[0] for item in items}
    return sizes.pop() if len(sizes) == 1 else None


def optimizers(module):
    loop = tracker()

    def stepped(optimizer, *_):
        try:  # not quietly(): this runs at every step
            if not _is_traced():
                loop.step(optimizer, clock())
        except Exception as error:
            failed("step", error)

    gradients(module.Optimizer)
    # Creating one takes long, because it imports the compiler. It may be within the first epoch.
    def created(call):
        loop.has_optimizer = True
        loop.here(search=True)

    observe(module.Optimizer, "__init__", before=created)
    _after(sys.modules["torch"].Tensor, "backward", loop.backward)
    module.register_optimizer_step_post_hook(stepped)


def gradients(owner):
    """Observes where gradients are set to zero: in an optimizer, or in modules."""
    _after(getattr(owner, "Module", owner), "zero_grad", tracker().cleared)


def _after(owner, name, action):
    """Does something after each call of a method. It is cheaper than observe(), because this is at every step."""
    original, action = getattr(owner, name), quietly(action)

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        result = original(*args, **kwargs)
        if not _is_traced():
            action()
        return result

    setattr(owner, name, wrapper)


def _is_traced():
    """Whether torch.compile is tracing the caller. It then leaves the hook out of its graph."""
    is_compiling = getattr(getattr(sys.modules["torch"], "compiler", None), "is_compiling", None)
    return is_compiling is not None and is_compiling()


def saving(module):
    def began(call):
        call.note = clock()

    for name in ("save", "save_file", "save_weights"):
        observe(module, name, before=began, after=lambda call: tracker().saved(call.note))


def traces(module):
    """Nothing in Python runs at each step of a compiled function of JAX. The first one is traced, which
    shows when the script's loop over epochs began; its epochs are those of the output."""
    position, size = _loop.Position(), None

    def traced(call):
        nonlocal size
        began, position.searches = clock(), 0  # each function is traced once
        if (position.loop is None or size is None) and not session().fit and position.read() is not None:
            sizes = {p.loader.batch_size for p in tracker().open}
            size = _loop.batch_size() or (sizes.pop() if len(sizes) == 1 else None)
            session().send("loop", ago=clock() - began, batch_size=size)

    observe(module, "_infer_params", before=traced)
