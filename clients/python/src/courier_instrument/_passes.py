"""Recognises epochs from passes over data loaders and steps of optimizers. It knows no framework and no
clock.

A unit is an epoch as far as loaders show it: the training passes that belong together, and the
evaluations after them. A training pass is one during which an optimizer makes steps; any other pass is an
evaluation. A unit ends where the next one begins. That is known only at the first step of the next
training pass, and the unit then ends when that pass began.
"""

import collections

MAX_OPEN = 64  # passes; more are abandoned iterators that are still referenced
MAX_PASSES = 16  # of a unit; then those that have ended are added up


class Loader:
    """A data loader with a key that is unique in the process; None is unknown."""

    def __init__(self, key, created=0.0, length=None, batch_size=None):
        self.key, self.created, self.length, self.batch_size = key, created, length, batch_size


class Pass:
    """One iteration over a loader."""

    def __init__(self, loader, began, position=None):
        self.loader, self.began = loader, began
        self.position = position  # of the script in its loop over epochs; None: unknown, or not in it
        self.ended = self.how = None  # "exhausted", "abandoned" or "split"
        self.batches = self.steps = 0
        self.fresh = 0  # batches since the last step
        self.wait = 0.0  # seconds in which the training waited for batches
        self.last = self.asked = began  # when the last batch came, and was asked for
        self.rest = None  # the pass in which its iterator goes on, in the next epoch of the script's loop

    @property
    def used(self):
        """Batches, without those that a pass delivered after its last step and before it was left."""
        return self.batches - self.fresh if self.how == "abandoned" else self.batches

    @property
    def end(self):
        return self.last if self.ended is None else self.ended

    def may_be_draw(self):
        return self.batches == 1 and self.loader.length != 1

    def is_draw(self):
        """Whether the pass delivered one batch of several and was left."""
        return self.how == "abandoned" and self.may_be_draw()


class Unit:
    """Training passes that belong together, and the evaluations after them."""

    def __init__(self, number, began, position=None):
        self.number = number  # from 1, in this process
        self.began, self.ended = began, None
        self.until = None  # values that were logged until then belong to the unit
        self.passes = []  # training passes
        self.keys = set()  # of their loaders
        self.trained = None  # end of the last training pass; None: one is open
        self.evaluations = []  # passes after the training
        self.nested = 0.0  # seconds of evaluations within a training pass
        self.saved = began  # when a checkpoint within the script's loop was written
        self.is_partial = False  # the training ended within the unit, or its begin is unknown
        self.position = position  # of the script in its loop over epochs; None: unknown
        self.optimizers = collections.Counter()  # steps by optimizer
        self._batches, self._wait = 0, 0.0  # of passes that are not in the list any more

    def add_pass(self, p):
        self.passes.append(p)
        self.keys.add(p.loader.key)
        self.trained = p.ended
        if len(self.passes) > MAX_PASSES:
            ended = [q for q in self.passes[:-1] if q.ended is not None]
            counted = [q for q in self._longest() if q in ended]
            self._batches += sum(q.used for q in counted)
            self._wait += sum(q.wait for q in ended)
            self.passes = [q for q in self.passes if q not in ended]

    def _longest(self):
        """The training passes, without those that overlap with a longer one or an equal one before it."""
        def is_beside(p, q):
            return (q is not p and q.began < p.end and p.began < q.end
                    and (q.steps, -q.began) > (p.steps, -p.began))

        return [p for p in self.passes if not any(is_beside(p, q) for q in self.passes)]

    @property
    def batches(self):
        return self._batches + sum(p.used for p in self._longest())

    @property
    def steps(self):
        """Steps of the optimizer with the most steps."""
        return max(self.optimizers.values(), default=0)

    @property
    def wait(self):
        return self._wait + sum(p.wait for p in self.passes)

    @property
    def main(self):
        """The pass with the most batches; None without a loader."""
        return max(self.passes, key=lambda p: p.batches, default=None)

    @property
    def active(self):
        """The end of its last pass or checkpoint."""
        trained = self.main.last if self.trained is None else self.trained
        return max([trained, self.saved] + [p.ended for p in self.evaluations])

    @property
    def evaluation_seconds(self):
        return self.nested + sum(p.ended - p.began for p in self.evaluations)


class Tracker:
    """Forms units. ``on_unit`` is called with each finished one, ``on_begin`` when one begins."""

    def __init__(self, on_unit, on_begin=None):
        self._on_unit = on_unit
        self._on_begin = on_begin or (lambda unit: None)
        self.open = []  # passes
        self.unit = self.previous = None  # the current one, and the last finished one
        self._position = None  # of the current step
        self._gap = 0.0  # between the last activity of a unit in the script's loop and its end
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
        """A batch was asked for at one time and is delivered now. Returns the pass that it belongs to."""
        p = p.rest or p
        p.batches += 1
        p.fresh += 1
        p.wait += now - asked
        if p.batches == 1 and asked - p.asked > 0.1:
            p.began = asked  # the iterator was made long before
        p.last, p.asked = now, asked
        return p

    def _split(self, p, at):
        """Ends a pass before the batch that has no step yet. That one begins a pass of its own."""
        rest = Pass(p.loader, at)
        rest.batches, rest.fresh, rest.last, rest.asked = p.fresh, p.fresh, p.last, p.asked
        p.batches, p.fresh = p.batches - p.fresh, 0
        self.end(p, "split", at)
        p.rest = rest
        self.open.append(rest)

    def end(self, p, how, now):
        p = p.rest or p
        if p.ended is not None:
            return
        p.how = how
        p.ended = p.last if how == "abandoned" and not p.steps else now
        if p in self.open:
            self.open.remove(p)
        if not p.batches:
            return
        self._closed, unit = p, self.unit
        if unit is None:
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
        self._position, unit = position, self.unit
        if position is not None and unit is not None and unit.position not in (None, position):
            self._continue(unit)
        if not self._credit_open() and position is not None and self.unit is None:
            self._on_begin(self._begin_unit(self._boundary or now))
        if self.unit:
            self.unit.optimizers[optimizer] += 1
        self._last_step = self._boundary = now

    def _continue(self, unit):
        """The script's loop is in its next epoch. Without a new pass, its iterators have no end, and go on
        in the next unit, or there are none."""
        fresh = [p for p in self.open if p.fresh]
        if not all(p.steps for p in fresh):
            return
        passes = [p for p in fresh if p in unit.passes]
        at = min((p.asked for p in passes), default=self._boundary)
        self._gap = at - self._last_step
        for p in passes:
            self._split(p, at)
        if not passes:
            # Episodes are played before the steps that learn from them. If most of the time passes between
            # the steps of two epochs, it is unknown which of them it belongs to.
            unit.is_partial = not unit.passes and unit.steps > 1 and 2 * self._gap > at - unit.began
            self._finish_unit(unit, at)
            self._on_begin(self._begin_unit(at))

    def is_in_loop(self):
        """Whether the last step was in the script's loop over epochs."""
        return self._position is not None

    def _begin_unit(self, at):
        number = self.previous.number + 1 if self.previous else 1
        self.unit = Unit(number, at, self._position)
        return self.unit

    def _credit_open(self):
        """Credits a step to the passes that delivered for it."""
        # A finalizer of an iterator may end a pass at any time, so the passes are copied.
        passes = [p for p in tuple(self.open) if p.fresh]
        if not passes:  # a loader that prefetches ends before the step of its last batch
            p = self._closed
            if p is None or not p.fresh or not p.steps and p.batches > 1:
                return False
            passes = [p]
        for p in passes if len(passes) == 1 else _together(passes):
            p.fresh = 0
            p.steps += 1
            if p.steps == 1:
                self._trains(p)
            elif p.steps == 2:
                self._drop_draws(p)
        return True

    def _drop_draws(self, p):
        """A pass has two steps, so the draws before it in its unit were a trial of the script."""
        unit = self.unit
        if p in unit.passes[1:] and all(q.is_draw() for q in unit.passes if q is not p):
            unit.passes, unit.began, unit.position = [p], p.began, self._position

    def _trains(self, p):
        """A pass turned out to be a training pass: it begins a unit or joins the current one."""
        unit = self.unit
        if unit is not None and not self._begins_unit(p, unit):
            unit.add_pass(p)
            return
        if unit is not None:
            self._finish_unit(unit, p.began, p)
        unit = self._begin_unit(p.began)
        unit.add_pass(p)
        self._on_begin(unit)

    def _begins_unit(self, p, unit):
        if self._position is not None and unit.position is not None:
            return self._position != unit.position
        if not unit.passes:
            return True
        others = [q for q in self.open if q is not p and q.steps]
        if others:
            # The longest of several loaders decides. Shorter ones begin again within a unit.
            longest = max(q.loader.length or 0 for q in others)
            return p.loader.key in unit.keys and (p.loader.length or 0) >= longest
        if p.may_be_draw() and all(q.is_draw() for q in unit.passes):
            return False  # next(iter(loader)) for every step
        return (p.loader.key in unit.keys
                or bool(unit.evaluations)
                or p.loader.created > unit.began
                or self._cycle is not None and unit.keys >= self._cycle)

    def _finish_unit(self, unit, now, successor=None, until=None):
        if unit.trained is None:
            unit.trained = min(now, max([p.last for p in unit.passes], default=now))
        position, new = unit.position, self._position
        goes_on = position and new is not None and new[1:] == position[1:] and new[0] > position[0]
        if unit.passes and position is not None and goes_on:
            self._gap = now - unit.active
        elif unit.passes and position is not None:
            # The loop over epochs has ended, or the previous one of several. What follows is not its.
            unit.evaluations = [p for p in unit.evaluations if p.position == position]
            until, now = until or now, min(now, unit.active + self._gap)
        unit.ended, unit.until = now, until or now
        if successor is not None and successor.loader.key in unit.keys:
            self._cycle = frozenset(unit.keys)
        self.previous, self.unit = unit, None
        self._on_unit(unit)

    def finish(self, now, is_error=False):
        """The training has ended. The last unit ends with its evaluations: as many as the previous unit
        had, because a final test may follow. A unit whose training did not end is partial."""
        unit, before = self.unit, self.previous
        if unit is None:
            return
        for p in list(self.open):
            if p.steps:
                self.end(p, "abandoned", p.last)
        if not unit.passes:
            before = before or unit
            unit.is_partial = is_error or before.is_partial or unit.steps < before.steps
            self._finish_unit(unit, min(now, self._last_step + self._gap), until=now)
            return
        usual = before.batches if before else unit.main.loader.length or 0
        is_short = unit.batches < 0.95 * usual or is_error and not unit.evaluations
        if before and before.position is not None and unit.steps >= before.steps:
            is_short = False
        unit.is_partial = is_short and all(p.how == "abandoned" for p in unit.passes)
        if unit.position is None:
            unit.is_partial = unit.is_partial or all(p.is_draw() for p in unit.passes)
            del unit.evaluations[len(before.evaluations) if before else len(unit.evaluations):]
        self._position = None
        self._finish_unit(unit, now if unit.position is not None else unit.active, until=now)


def _together(passes):
    """Those of several passes that train together: they take turns. A pass without steps so far may be
    another one: an iterator of examples for a preview, or an evaluation that was left early and whose
    iterator is still referenced."""
    newest = max(passes, key=lambda p: p.last)
    fresh = max([1] + [p.fresh for p in passes if p.steps])
    found = [p for p in passes
             if p.steps or p is newest or p.last >= newest.began and p.fresh <= 4 * fresh]
    for p in passes:
        p.fresh = 0
    return found
