"""Recognises epochs from passes over data loaders, steps of optimizers, and the position of the script in
its loop over epochs. It knows no framework and no clock.

A unit is an epoch. If the script's loop is known, a unit begins with the first event at a new position.
Otherwise it is a pass over a loader during which an optimizer makes steps, with the evaluations after it.
Any other pass is an evaluation. The end of the last unit is not seen: after its last event, as much time is
added as there was in one of the units before it.
"""

import collections

MAX_OPEN = 64  # passes; more are abandoned iterators that are still referenced
MAX_GAPS = 4  # some epochs end with an evaluation, and others do not
MIN_PART = 0.95  # of the previous unit, in a last unit that was left


class Loader:
    """A data loader with a key that is unique in the process; None is unknown."""

    def __init__(self, key, created=0.0, length=None, batch_size=None):
        self.key, self.created, self.length, self.batch_size = key, created, length, batch_size
        self.sizes = set() if batch_size is None else None  # of its batches, which may differ

    def measure(self, size):
        self.sizes.add(size)
        self.batch_size = size if len(self.sizes) == 1 else None


class Pass:
    """One iteration over a loader."""

    def __init__(self, loader, began):
        self.loader, self.began = loader, began
        self.unit = None  # whose steps it delivered for
        self.batches = 0
        self.fresh, self.wait, self.asked = 0, 0.0, began  # since the last step; asked: for the first batch
        self.last = began  # when the last batch came
        self.before = 0  # batches for the step before
        self.parts = 0  # series of batches without a step between them
        self.gradients = 0  # batches for which gradients were computed


class Unit:
    def __init__(self, began, position):
        self.began, self.ended, self.until = began, None, None  # until: of the values that were logged
        self.position = position  # of the script in its loop over epochs; None: unknown
        self.loop = None  # that loop
        self.last = began  # the last event within it, without evaluations
        self.loaders = {}  # by their keys
        self.counts = collections.Counter()  # batches by loader
        self.optimizers = collections.Counter()  # steps by optimizer
        self.evaluations = []  # (begin, end) of the passes without steps
        self.has_begun = self.is_evaluated = False  # its training, and after that
        self.wait = 0.0  # seconds in which the training waited for batches
        self.is_exhausted = False  # its last training pass came to its end
        self.is_partial = False  # the training ended within the unit, or its limits are unknown

    @property
    def steps(self):
        """Steps of the optimizer with the most steps."""
        return max(self.optimizers.values(), default=0)

    @property
    def batches(self):
        return max(self.counts.values(), default=0)

    @property
    def length(self):
        """Batches of a whole pass; 0 if it is unknown, or if there are several loaders."""
        return len(self.loaders) == 1 and next(iter(self.loaders.values())).length or 0

    @property
    def batch_size(self):
        """That of the loaders with most of the batches; None if they differ."""
        sizes = {self.loaders[k].batch_size for k, n in self.counts.items() if 2 * n > self.batches}
        return sizes.pop() if len(sizes) == 1 else None

    @property
    def active(self):
        """The last event within it."""
        return max([self.last] + [ended for _, ended in self.evaluations])


class Tracker:
    """Forms units. ``on_unit`` is called with each finished one, ``on_begin`` at the first step of one."""

    def __init__(self, on_unit, on_begin=None):
        self._on_unit = on_unit
        self._on_begin = on_begin or (lambda unit: None)
        self.open = []  # passes
        self.unit = self.previous = None  # the current one, and the last finished one
        self._has_loop = False  # the script has a loop over epochs
        self._gaps = collections.deque(maxlen=MAX_GAPS)  # between the last event of a unit and its end
        self._units = self._mostly_gap = 0  # of the loop, and those of them that end with a long gap
        self._cycle = None  # keys of the loaders of a unit, once a unit has repeated
        self._closed = None  # the pass that ended last

    def at(self, position, now):
        """The script is at a position in its loop over epochs. The first item is the value of the loop, the
        others tell one loop from another."""
        unit = self.unit
        if position == (unit and unit.position):
            if position is not None:
                unit.last = now
            return
        if unit is not None and unit.position is not None:
            self._finish_unit(now, position is not None and position[1:] == unit.position[1:]
                              and position[0] > unit.position[0])
        if position is not None:  # passes before the loop were a warm-up
            self.unit, self._has_loop = Unit(now, position), True

    # Passes

    def begin(self, loader, now, position=None):
        self.at(position, now)
        p = Pass(loader, now)
        if len(self.open) >= MAX_OPEN:
            self.end(self.open[0], False, now)
        self.open.append(p)
        self._closed = None
        return p

    def deliver(self, p, asked, now):
        """A batch was asked for at one time and is delivered now."""
        if not p.fresh:
            p.asked = asked
            p.parts += 1
        p.batches += 1
        p.fresh += 1
        p.wait += now - asked
        p.last = now

    def end(self, p, is_exhausted, now):
        """A pass came to its end, or was left."""
        if p not in self.open:
            return
        self.open.remove(p)
        known = [unit for unit in (self.unit, self.previous) if unit is not None]
        has_trained = any(unit.position is not None or p.loader.key in unit.loaders for unit in known)
        if p.unit is None and p.gradients > 1 and has_trained:  # its gradients are for a step in a later epoch
            self._credit(p, self.unit and self.unit.position, None)
        self._closed, unit = p, self.unit
        ended = now if is_exhausted else p.last
        if unit is None or not p.batches or p.began < unit.began and p.unit is not unit:
            return
        if p.unit is unit:
            unit.is_exhausted, unit.last = is_exhausted, max(unit.last, ended)
        else:
            if p.parts == 1:  # else there is training between them
                unit.evaluations.append((p.began, ended))
            unit.is_evaluated |= not any(q.unit is unit for q in self.open)

    # Steps

    def step(self, optimizer, now, position=None):
        """An optimizer has made a step."""
        # A finalizer of an iterator may end a pass at any time, so the passes are copied.
        passes, closed = [p for p in tuple(self.open) if p.fresh], self._closed
        if len(passes) > 1:
            passes = _together(passes)
        elif not passes and closed is not None and closed.fresh and (closed.unit or closed.batches == 1):
            passes = [closed]  # a loader that prefetches ends before the step of its last batch
        unit = self.unit
        if unit is None or unit.position != position:
            self.at(position, min([p.asked for p in passes], default=now))
        is_credited = False
        for p in passes:
            is_credited |= self._credit(p, position, optimizer)
        if passes:
            for p in self.open:
                p.before, p.fresh, p.wait = p.fresh, 0, 0.0
        unit = self.unit
        if unit is None or passes and not is_credited:  # perhaps a single draw
            return
        unit.optimizers[optimizer] += 1
        if is_credited or not unit.loaders:
            unit.last = now
        if not unit.has_begun:
            unit.has_begun = True
            self._on_begin(unit)

    def _credit(self, p, position, optimizer):
        """Credits a step to a pass that delivered for it, and returns whether it did."""
        if position is None and p.unit is None:
            if self._has_loop or p.batches == 1 and p.loader.length != 1:
                return False  # one batch of several may be a draw
            self._infer(p, optimizer)
            p.fresh = p.batches
        unit = p.unit = self.unit
        unit.loaders[p.loader.key] = p.loader
        unit.counts[p.loader.key] += p.fresh
        unit.wait += p.wait
        p.fresh, p.wait = 0, 0.0
        return True

    def _infer(self, p, optimizer):
        """Begins a unit with a training pass without a position, or lets it join the current one."""
        unit = self.unit
        if unit is not None and any(q.unit is unit for q in self.open):
            unit.is_partial = True  # several loaders at the same time
        elif (unit is None or unit.is_evaluated or p.loader.key in unit.loaders
              or p.loader.created > unit.began or self._cycle and self._cycle <= set(unit.loaders)):
            if unit is not None:
                self._cycle = set(unit.loaders) if p.loader.key in unit.loaders else self._cycle
                self._finish_unit(p.began, True)
            self.unit = Unit(p.began, None)
            self.unit.optimizers[optimizer] += p.batches > p.fresh  # the first step looked like that of a draw

    # Ends of units

    def _finish_unit(self, now, goes_on, is_error=False):
        unit, before, self.unit = self.unit, self.previous, None
        if not unit.steps and not unit.loaders:  # only evaluations
            return
        unit.ended = unit.until = now
        if before is None or (before.position or ())[1:] != (unit.position or ())[1:]:
            before = None  # it is the first one of its loop
            self._gaps.clear()
            self._units = self._mostly_gap = 0
        if goes_on:
            self._gaps.append(now - unit.active)
            # Episodes are played before the steps that learn from them. If most of the time passes between the
            # steps of two epochs, it is unknown which of them it belongs to. Some epochs save examples.
            self._units += 1
            share = 0.5 if unit.steps > 1 else 0.9  # some set gradients to zero after the forward pass
            self._mostly_gap += not unit.loaders and self._gaps[-1] > share * (now - unit.began)
            unit.is_partial |= 2 * self._mostly_gap >= self._units
            unit.is_partial |= before is not None and before.is_partial
        else:
            self._end_last(unit, before, now, is_error)
        self.previous = unit
        self._on_unit(unit)

    def _end_last(self, unit, before, now, is_error):
        """The loop has ended, or the training. What follows is not the unit's."""
        if before is None:
            is_short, evaluations = unit.batches < MIN_PART * unit.length, 1
        else:
            size, usual = unit.batches or unit.steps, before.batches or before.steps
            is_short, evaluations = size < MIN_PART * usual, len(before.evaluations)
            unit.is_partial |= before.is_partial
            if unit.position is None:
                del unit.evaluations[evaluations:]  # a final test may follow
        left = now - unit.active
        gap = min(self._gaps, key=lambda gap: abs(gap - left), default=0.0)
        unit.ended = unit.active + min(left, gap)
        unit.began -= max(0.0, gap - left)  # what is missing at its end was unseen work at its begin
        unit.is_partial |= is_short and not unit.is_exhausted
        unit.is_partial |= is_error and len(unit.evaluations) < evaluations

    def finish(self, now, is_error=False):
        """The training has ended."""
        if self.unit is not None:
            for p in [p for p in self.open if p.unit is self.unit]:
                self.end(p, False, p.last)
            self._finish_unit(now, False, is_error)


def _together(passes):
    """Those of several passes that train together: they deliver for one step after the other. The others are
    iterators for a preview, and evaluations that are in parts, or were left and are still referenced."""
    newest = max(passes, key=lambda p: p.last)
    usual = max([1] + [p.fresh for p in passes if p.unit])
    return [p for p in passes if p.unit or p is newest
            or p.before and p.last >= newest.began and p.fresh <= 4 * usual]
