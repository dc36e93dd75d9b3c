"""Recognises epochs from passes over data loaders and steps of optimizers.

This module knows no framework and no clock. It gets five kinds of events in the order in which they
happen: a pass over a loader begins, it delivers a batch, it ends, an optimizer makes a step, and the
training ends. From these it forms units.

A unit is an epoch as far as loaders show it: one training pass, or several ones that belong together,
with the evaluations after it. A training pass is one during which an optimizer makes steps; any other
pass is an evaluation. A unit ends where the next one begins. That is known only at the first step of
the next training pass, and the unit then ends at the time at which that pass began.
"""

MAX_OPEN = 64  # passes; more are abandoned iterators that are still referenced
DRAW_RATIO = 0.1  # part of a loader's length beyond which a pass is endless


class Loader:
    """What is known about a data loader."""

    __slots__ = ("key", "created", "length", "batch_size", "samples")

    def __init__(self, key, created=0.0, length=None, batch_size=None, samples=None):
        self.key = key  # unique in the process
        self.created = created
        self.length = length  # batches; None: unknown
        self.batch_size = batch_size  # None: unknown
        self.samples = samples  # of the dataset; None: unknown


class Pass:
    """One iteration over a loader."""

    __slots__ = ("loader", "began", "ended", "how", "batches", "steps", "fresh", "wait", "first",
                 "last", "asked", "mark", "position")

    def __init__(self, loader, began, position=None):
        self.loader = loader
        self.began = began
        self.position = position  # of the script in its loop over epochs; None: unknown, or not in it
        self.ended = None
        self.how = None  # "exhausted", "abandoned" or "wrapped"
        self.batches = 0
        self.steps = 0
        self.fresh = 0  # batches since the last step
        self.wait = 0.0  # seconds in which the training waited for batches
        self.first = None  # seconds until the first batch
        self.last = self.asked = began  # when the last batch came, and was asked for
        self.mark = None  # state at the length of the loader: (time, batches, steps, wait)

    @property
    def used(self):
        """Batches, without those that a pass delivered after its last step and before it was left."""
        return self.batches - self.fresh if self.how == "abandoned" else self.batches


class Unit:
    """Training passes that belong together, and the evaluations after them."""

    __slots__ = ("number", "began", "ended", "passes", "keys", "trained", "evaluations", "nested",
                 "optimizers", "is_partial", "position", "until", "before")

    def __init__(self, number, began, position=None):
        self.number = number  # from 1, in this process
        self.began = began
        self.ended = None
        self.passes = []  # training passes
        self.keys = set()  # of their loaders
        self.trained = None  # end of the last training pass; None: one is open
        self.evaluations = []  # passes after the training
        self.nested = 0.0  # seconds of evaluations within a training pass
        self.optimizers = {}  # steps by optimizer
        self.is_partial = False  # the training ended within the unit
        self.position = position  # of the script in its loop over epochs; None: unknown
        self.until = None  # values that were logged until then belong to the unit
        self.before = {}  # (batches, wait) of passes that had begun in the previous unit

    @property
    def batches(self):
        """Batches of the training passes; of passes at the same time, those of the longest."""
        return sum(p.used - self.before.get(p, (0, 0))[0] for p in self.passes
                   if not self._is_beside(p))

    @property
    def wait(self):
        return sum(p.wait - self.before.get(p, (0, 0))[1] for p in self.passes)

    def _is_beside(self, p):
        """Whether a longer pass, or an equal one before it, overlaps with a pass."""
        return any(q is not p and q.began < _end_of(p) and p.began < _end_of(q)
                   and (q.steps, -q.began) > (p.steps, -p.began) for q in self.passes)

    @property
    def steps(self):
        """Steps of the optimizer with the most steps."""
        return max(self.optimizers.values(), default=0)

    @property
    def main(self):
        """The pass with the most batches; None without a loader."""
        return max(self.passes, key=lambda p: p.batches, default=None)

    @property
    def evaluation_seconds(self):
        return self.nested + sum(p.ended - p.began for p in self.evaluations)


class Tracker:
    """Forms units. ``on_unit`` is called with each finished one, ``on_begin`` when one begins."""

    def __init__(self, on_unit, on_begin=None):
        self._on_unit = on_unit
        self._on_begin = on_begin or (lambda unit: None)
        self.open = []  # passes
        self.unit = None  # the current one
        self.previous = None  # the last finished one
        self._position = None  # of the current step
        self._gap = 0.0  # between the last step of a unit without a loader and its end
        self._boundary = 0.0  # the last step, or when gradients were first set to zero after it
        self._last_step = 0.0
        self._cycle = None  # keys of the loaders of a unit, once a unit has repeated
        self._closed = None  # the pass that ended last

    def begin(self, loader, now, position=None):
        p = Pass(loader, now, position)
        if len(self.open) >= MAX_OPEN:
            self.end(self.open[0], "abandoned", now)
        self.open.append(p)
        self._closed = None
        return p

    def deliver(self, p, asked, now):
        """A batch was asked for at one time and is delivered now. Returns the pass that it belongs to:
        a new one if the iterator has no end and begins again."""
        p.batches += 1
        p.fresh += 1
        p.wait += now - asked
        if p.first is None:
            if asked - p.asked > 0.1:
                p.began = asked  # the iterator was made long before
            p.first = now - p.began
        p.last, p.asked = now, asked
        length = p.loader.length
        if length and p.batches >= length:
            return self._beyond(p, asked, now)
        return p

    def _beyond(self, p, asked, now):
        """A pass has delivered as many batches as its loader has. Usually it ends now. If it goes on for
        a while, its iterator is endless, and the pass ended where the length was reached."""
        length = p.loader.length
        if self.unit is not None and self.unit.position is not None:
            return p  # the script's own loop decides
        if p.batches == length:
            p.mark = (now, p.steps, p.wait)
            return p
        if p.batches == length + 1 and p.mark:
            p.mark = (asked, p.steps, p.wait - (now - asked))
        if p.mark is None or p.batches < length + max(1, int(DRAW_RATIO * length)):
            return p
        at, steps, wait = p.mark
        rest = Pass(p.loader, at)
        rest.batches, rest.fresh = p.batches - length, p.fresh
        rest.wait, rest.last, rest.first, rest.asked = p.wait - wait, now, 0.0, asked
        moved = p.steps - steps
        p.batches, p.steps, p.wait, p.fresh, p.mark = length, steps, wait, 0, None
        self.open.append(rest)
        self.end(p, "wrapped", at)
        if moved:
            unit, counts = self.unit, self.unit.optimizers if self.unit else {}
            self._position = None
            main = max(counts, key=counts.get, default=None)
            if main is not None:
                counts[main] = max(0, counts[main] - moved)
            rest.steps = moved
            self._trains(rest)
            if self.unit is not unit and main is not None:
                self.unit.optimizers[main] = moved
        return rest

    def end(self, p, how, now):
        if p.ended is not None:
            return
        p.how = how
        p.ended = p.last if how == "abandoned" and not p.steps else now
        if p in self.open:
            self.open.remove(p)
        if p.batches:
            self._closed = p
        unit = self.unit
        if unit is None or not p.batches:
            return
        if p.steps:
            if p in unit.passes and not any(q.steps for q in self.open):
                unit.trained = now
        elif unit.trained is None:
            unit.nested += p.ended - p.began
        elif p.began >= unit.trained:
            unit.evaluations.append(p)

    def cleared(self, now):
        """Gradients were set to zero: without a loader, the first sign of a new epoch."""
        if self._boundary == self._last_step:
            self._boundary = now

    def step(self, optimizer, now, position=None):
        """An optimizer has made a step, at a position in the script's loop over epochs."""
        self._position = position
        unit = self.unit
        is_next = (position is not None and unit is not None and unit.position is not None
                   and position != unit.position)
        if is_next and not any(p.fresh and not p.steps for p in self.open):
            self._continue(unit)
        if not self._credit_open() and position is not None and self.unit is None:
            self._on_begin(self._begin_unit(self._boundary or now))
        if self.unit:
            counts = self.unit.optimizers
            counts[optimizer] = counts.get(optimizer, 0) + 1
        self._last_step = self._boundary = now

    def _continue(self, unit):
        """The script's loop went on without a new pass: the iterators have no end, or there are none."""
        passes = [p for p in unit.passes if p in self.open and p.fresh]
        at = min((p.asked for p in passes), default=self._boundary)
        self._gap = at - self._last_step
        before = {p: (p.batches - p.fresh, p.wait) for p in passes}
        for p in passes:
            p.batches -= p.fresh  # they belong to the next unit
        self._finish_unit(unit, at)
        for p in passes:
            p.batches += p.fresh
        unit = self._begin_unit(at)
        unit.passes, unit.before = passes, before
        unit.keys.update(p.loader.key for p in passes)
        self._on_begin(unit)

    def is_in_loop(self):
        """Whether the last step was in the script's loop over epochs."""
        return self._position is not None

    def _goes_on(self, position):
        """Whether the step that ends a unit is in a later epoch of the same loop."""
        new = self._position
        return new is not None and new[1:] == position[1:] and new[0] > position[0]

    def _begin_unit(self, at):
        number = self.previous.number + 1 if self.previous else 1
        self.unit = Unit(number, at, self._position)
        return self.unit

    def _credit_open(self):
        """Credits a step to the passes that delivered for it. A pass without steps so far may be another
        one: an iterator of examples for a preview, or an evaluation that was left early and whose
        iterator is still referenced. Passes that train together take turns."""
        # A finalizer of an iterator may end a pass at any time, so the passes are copied.
        passes = [p for p in tuple(self.open) if p.fresh]
        if not passes:  # a loader that prefetches ends before the step of its last batch
            p = self._closed
            if p is None or not p.fresh or not p.steps and p.batches > 1:
                return False
            passes = [p]
        newest = max(passes, key=lambda p: p.last)
        fresh = max((p.fresh for p in passes if p.steps), default=0)
        for p in passes:
            if p.steps or p is newest or p.last >= newest.began and p.fresh <= 4 * max(fresh, 1):
                self._credit(p)
            else:
                p.fresh = 0
        return True

    def _credit(self, p):
        p.fresh = 0
        p.steps += 1
        if p.steps == 1:
            self._trains(p)

    def _trains(self, p):
        """A pass turned out to be a training pass: it begins a unit or joins the current one."""
        unit = self.unit
        begins = unit is None or self._begins_unit(p, unit)
        if begins:
            if unit is not None:
                self._finish_unit(unit, p.began, p)
            unit = self._begin_unit(p.began)
        unit.passes.append(p)
        unit.keys.add(p.loader.key)
        unit.trained = None if p.ended is None else p.ended
        if begins:
            self._on_begin(unit)

    def _begins_unit(self, p, unit):
        if self._position is not None and unit.position is not None:
            return self._position != unit.position
        if not unit.passes:
            return True
        others = [q for q in self.open if q is not p and q.steps]
        if others:
            return p.loader.key in unit.keys and self._is_longest(p, others)
        if all(_is_draw(q) for q in unit.passes) and _may_be_draw(p):
            return False  # next(iter(loader)) for every step
        if unit.passes[-1].how == "wrapped":
            return True
        return (p.loader.key in unit.keys
                or bool(unit.evaluations)
                or p.loader.created > unit.began
                or self._cycle is not None and unit.keys >= self._cycle)

    def _is_longest(self, p, others):
        """Whether a pass is over the longest of the loaders that are iterated at the same time. Shorter
        ones begin again within a unit, and endless ones never end."""
        own = p.loader.length or 0
        return all(own >= (q.loader.length or 0) for q in others)

    def _finish_unit(self, unit, now, successor=None, until=None):
        if unit.trained is None:
            unit.trained = min(now, max([p.last for p in unit.passes], default=now))
        if unit.passes and unit.position is not None and not self._goes_on(unit.position):
            # The loop over epochs has ended, or the previous one of several. What follows is not its.
            unit.evaluations = [p for p in unit.evaluations if p.position == unit.position]
            until, now = until or now, max([unit.trained] + [p.ended for p in unit.evaluations])
        unit.ended, unit.until = now, until or now
        if successor is not None and successor.loader.key in unit.keys:
            self._cycle = frozenset(unit.keys)
        self.previous, self.unit = unit, None
        self._on_unit(unit)

    def finish(self, now, is_error=False):
        """The training has ended. The last unit ends with its evaluations: as many as the previous unit
        had, because a final test may follow. A unit whose training did not end is partial."""
        unit = self.unit
        if unit is None:
            return
        for p in list(self.open):
            if p.steps:
                self.end(p, "abandoned", p.last)
        before = self.previous
        main = unit.main
        if main is None:
            usual = before.steps if before else unit.steps
            unit.is_partial = is_error or unit.steps < usual
            self._finish_unit(unit, min(now, self._last_step + self._gap), until=now)
            return
        if before and before.position is not None and unit.steps >= before.steps:
            is_error = False
            usual = None
        else:
            usual = before.batches if before else main.loader.length
        is_left = all(p.how == "abandoned" for p in unit.passes)
        is_short = bool(usual) and unit.batches < 0.95 * usual
        unit.is_partial = is_left and (is_short or is_error and not unit.evaluations)
        if unit.position is None and all(_is_draw(p) for p in unit.passes):
            unit.is_partial = True
        if unit.position is None and before:
            del unit.evaluations[len(before.evaluations):]
        self._position = None
        end = max([unit.trained or main.last] + [p.ended for p in unit.evaluations])
        self._finish_unit(unit, end, until=now)


def _end_of(p):
    return p.last if p.ended is None else p.ended


def _is_draw(p):
    """Whether a pass delivered one batch of several and was left."""
    return p.how == "abandoned" and _may_be_draw(p)


def _may_be_draw(p):
    return p.batches == 1 and p.loader.length != 1
