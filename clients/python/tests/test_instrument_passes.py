"""Tests of the recognition of epochs, without a framework.

    python -m unittest discover -s tests
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src"))

from courier_instrument._torch import _describe  # noqa: E402
from courier_instrument._passes import Loader, Tracker  # noqa: E402


class Script:
    """Plays a training: every event takes a second."""

    def __init__(self):
        self.units = []
        self.now = 0.0
        self.tracker = Tracker(self.units.append)
        self.keys = 0
        self.position = None

    def tick(self):
        self.now += 1
        return self.now

    def loader(self, length, known=True):
        self.keys += 1
        loader = Loader(self.keys, self.tick(), length if known else None)
        loader_length[loader.key] = length
        return loader

    def iterate(self, loader):
        """An iterator as a for statement makes it."""
        p = self.tracker.begin(loader, self.tick(), self.position)
        try:
            for _ in range(loader_length[loader.key]):
                asked = self.now
                self.tracker.deliver(p, asked, self.tick())
                yield p
            self.tracker.end(p, True, self.tick())
        finally:
            self.tracker.end(p, False, self.now)

    def step(self, optimizer=1):
        self.tracker.step(optimizer, self.tick(), self.position)

    def epochs(self, count, fold=0):
        """The script's own loop."""
        for epoch in range(count):
            self.position = epoch, fold
            yield epoch
        self.position = None

    def train(self, loader, every=1, limit=None):
        for i, _ in enumerate(self.iterate(loader)):
            if limit is not None and i >= limit:
                break
            if (i + 1) % every == 0:
                self.step()

    def evaluate(self, loader, limit=None):
        for i, _ in enumerate(self.iterate(loader)):
            if i + 1 == limit:
                break

    def finish(self, is_error=False):
        self.tracker.finish(self.tick(), is_error)
        return [u for u in self.units if not u.is_partial]


loader_length = {}


class UnitsTest(unittest.TestCase):
    def check(self, units, batches):
        self.assertEqual([u.batches for u in units], batches)
        for a, b in zip(units, units[1:-1]):
            self.assertEqual(a.ended, b.began)


class PassesTest(UnitsTest):
    def test_training_and_validation(self):
        s = Script()
        a, v = s.loader(10), s.loader(3)
        for _ in range(3):
            s.train(a)
            s.evaluate(v)
        units = s.finish()
        self.check(units, [10, 10, 10])
        self.assertEqual([u.steps for u in units], [10, 10, 10])
        self.assertEqual([len(u.evaluations) for u in units], [1, 1, 1])

    def test_sanity_check_and_final_test(self):
        s = Script()
        a, v, t = s.loader(10), s.loader(3), s.loader(5)
        s.evaluate(v)
        for _ in range(2):
            s.train(a)
            s.evaluate(v)
        end = s.now + 1  # as between the epochs
        s.evaluate(t)
        units = s.finish()
        self.check(units, [10, 10])
        self.assertLessEqual(units[-1].ended, end)

    def test_accuracy_on_training_data(self):
        s = Script()
        a = s.loader(10)
        for _ in range(3):
            s.train(a)
            s.evaluate(a)
        self.check(s.finish(), [10, 10, 10])

    def test_new_loader_each_epoch(self):
        s = Script()
        for _ in range(4):
            s.train(s.loader(7))
        self.check(s.finish(), [7, 7, 7, 7])

    def test_several_tasks(self):
        s = Script()
        a, b = s.loader(10), s.loader(4)
        for _ in range(3):
            s.train(a)
            s.train(b)
        self.check(s.finish(), [10, 10, 10])

    def test_curriculum(self):
        s = Script()
        stages = [s.loader(5), s.loader(6), s.loader(7)]
        for stage in stages:
            s.train(stage)
            s.train(stage)
        self.check(s.finish(), [5, 5, 6, 6, 7, 7])

    def test_loaders_at_the_same_time(self):
        """Which of them makes the epochs is known only within the script's loop."""
        for is_known in (False, True):
            s = Script()
            a, b = s.loader(10), s.loader(4)
            for _ in s.epochs(3) if is_known else range(3):
                short = s.iterate(b)
                for _ in s.iterate(a):
                    if next(short, None) is None:
                        short = s.iterate(b)
                        next(short)
                    s.step(1)
                    s.step(2)
                short.close()
            self.check(s.finish(), [10, 10, 10] * is_known)
            self.assertEqual({(u.batches, u.length) for u in s.units}, {(10, 0)})

    def test_preview_iterator(self):
        s = Script()
        a, v = s.loader(10), s.loader(3)
        preview = s.iterate(a)
        for _ in range(3):
            s.train(a)
            s.evaluate(v)
            next(preview)
        self.check(s.finish(), [10, 10, 10])

    def test_evaluation_within_training(self):
        s = Script()
        a, v = s.loader(9), s.loader(20)
        kept = []
        for _ in range(2):
            for i, _ in enumerate(s.iterate(a)):
                s.step()
                if i % 3 == 2:
                    it = s.iterate(v)
                    kept.append(it)  # as with persistent workers: its end is not seen
                    for _ in range(8):
                        next(it)
        units = s.finish()
        self.check(units, [9, 9])

    def test_evaluation_in_parts(self):
        """One iterator over the validation data delivers a batch after every fifth step."""
        for is_known in (False, True):
            s = Script()
            a, v = s.loader(20), s.loader(4)
            for _ in s.epochs(3) if is_known else range(3):
                parts = s.iterate(v)
                for i, _ in enumerate(s.iterate(a)):
                    s.step()
                    if i % 5 == 4:
                        next(parts)
            units = s.finish()
            self.check(units, [20, 20, 20])
            self.assertEqual([(u.steps, u.evaluations, u.length) for u in units], [(20, [], 20)] * 3)

    def test_accumulation_with_a_rest(self):
        s = Script()
        a = s.loader(10)
        for _ in range(2):
            s.train(a, every=4)
            s.step()  # for the last two batches, after the loop
        units = s.finish()
        self.check(units, [10, 10])
        self.assertEqual([u.steps for u in units], [3, 3])

    def test_prefetching_loader(self):
        s = Script()
        a = s.loader(5)
        for _ in range(3):
            it = s.iterate(a)
            next(it)
            while True:
                more = next(it, None)
                s.step()
                if more is None:
                    break
        self.check(s.finish(), [5, 5, 5])

    def test_limited_batches(self):
        s = Script()
        a = s.loader(50)
        for _ in range(3):
            s.train(a, limit=20)
        self.check(s.finish(), [20, 20, 20])

    def test_single_draws(self):
        s = Script()
        a, v = s.loader(10), s.loader(3)
        for _ in range(30):
            it = s.iterate(a)
            next(it)
            it.close()
            s.step()
        s.evaluate(v)
        self.assertEqual(s.finish(), [])

    def test_trial_of_a_batch_before_the_loop(self):
        s = Script()
        a = s.loader(10)
        trial = s.iterate(a)
        next(trial)
        trial.close()
        s.step()
        began = s.now + 1
        for _ in range(2):
            s.train(a)
        units = s.finish()
        self.check(units, [10, 10])
        self.assertEqual(units[0].began, began)

    def test_trial_of_a_batch_before_a_known_loop(self):
        s = Script()
        a = s.loader(10)
        trial = s.iterate(a)
        next(trial)
        trial.close()
        for _ in range(5):
            s.step()
        s.train(a)
        for _ in s.epochs(2):
            s.train(a)
        s.finish()
        self.assertEqual([(u.batches, u.position) for u in s.units], [(10, (0, 0)), (10, (1, 0))])

    def test_epochs_without_a_step(self):
        for has_loop in True, False:
            s = Script()
            a, v = s.loader(2), s.loader(3)  # the validation computes gradients, too
            for epoch in s.epochs(4) if has_loop else range(4):
                for p in s.iterate(a):
                    p.gradients += 1
                    if epoch % 2 == 0:
                        s.step()
                for p in s.iterate(v):
                    p.gradients += not has_loop
            s.finish()
            self.assertEqual([u.batches for u in s.units], [2] * 4)

    def test_interrupted(self):
        s = Script()
        a = s.loader(10)
        s.train(a)
        s.train(a, limit=4)
        self.check(s.finish(is_error=True), [10])

    def test_steps_without_loader(self):
        s = Script()
        for _ in range(5):
            s.step()
        self.assertEqual(s.finish(), [])

    def test_optimizer_that_iterates_in_its_closure(self):
        s = Script()
        a = s.loader(4)
        for _ in range(3):
            for _ in range(2):
                s.evaluate(a)
            s.step()


class LoaderTest(unittest.TestCase):
    def describe(self, samples, batch_size):
        class Batches(list):
            pass

        loader = Batches(range(-(-samples // batch_size)))
        loader.batch_size = batch_size
        return _describe(loader)

    def test_batch_size_of_a_loader(self):
        self.assertEqual(self.describe(100, 32).batch_size, 32)

    def test_batches_of_several_sizes(self):
        loader = Loader(1)
        loader.measure(40)
        self.assertEqual(loader.batch_size, 40)
        for size in (20, 40):
            loader.measure(size)
            self.assertIsNone(loader.batch_size)

    def test_single_batch_may_be_smaller(self):  # its own size is taken
        self.assertIsNone(self.describe(20, 32).batch_size)


class PositionTest(UnitsTest):
    """The script's loop over epochs is known."""

    def test_loop_without_loader(self):
        s = Script()
        for _ in s.epochs(3):
            for _ in range(4):
                s.tracker.at(s.position, s.tick())
                s.step()
        s.finish()
        self.assertEqual([(u.steps, u.is_partial) for u in s.units], [(4, False)] * 3)

    def test_episodes_before_the_steps(self):
        for steps in (1, 4):
            s = Script()
            for _ in s.epochs(3):
                s.now += 20
                for _ in range(steps):
                    s.tracker.at(s.position, s.tick())
                    s.step()
            self.assertEqual(s.finish(), [])
            self.assertEqual(len(s.units), 3)

    def test_examples_after_some_epochs(self):
        s = Script()
        for epoch in s.epochs(6):
            for _ in range(4):
                s.tracker.at(s.position, s.tick())
                s.step()
            s.now += 20 if epoch == 2 else 0
        self.assertEqual([u.ended - u.began for u in s.finish()], [8, 8, 28, 8, 8, 8])

    def test_iterator_without_end(self):
        s, seen = Script(), []
        s.tracker = Tracker(lambda u: seen.append((u.batches, u.steps)))
        batches = s.iterate(s.loader(1000))
        for _ in s.epochs(3):
            for _ in range(5):
                next(batches)
                s.step()
        s.finish()
        self.assertEqual(seen, [(5, 5)] * 3)

    def test_several_passes_in_an_epoch(self):
        s = Script()
        a, b = s.loader(3), s.loader(2)
        for _ in s.epochs(2):
            for _ in range(2):
                s.train(a)
                s.evaluate(b)
        s.finish()
        self.assertEqual([u.batches for u in s.units], [6, 6])

    def test_validation_first(self):
        s = Script()
        a, v = s.loader(3), s.loader(2)
        for _ in s.epochs(2):
            s.evaluate(v)
            s.train(a)
        units = s.finish()
        self.check(units, [3, 3])
        self.assertEqual([(u.began, len(u.evaluations)) for u in units], [(3, 1), (15, 1)])

    def test_closures_that_set_gradients_to_zero(self):
        s = Script()
        for _ in s.epochs(3):
            for _ in range(5):
                s.tracker.at(s.position, s.tick())
            s.step()
        s.finish()
        self.assertEqual([(u.began, u.ended) for u in s.units], [(1, 7), (7, 13), (13, 19)])

    def test_work_after_the_last_pass(self):
        """As much as in the epoch before, but not what follows the loop."""
        for after in (1, 50):
            s = Script()
            a, v = s.loader(3), s.loader(2)
            for _ in s.epochs(2):
                s.train(a)
                s.now += 9  # saves examples
            s.now += after
            s.evaluate(v)
            units = s.finish()
            self.assertEqual(units[1].ended - units[1].began, units[0].ended - units[0].began)

    def test_work_before_the_first_event(self):
        s = Script()
        a = s.loader(3)
        for epoch in s.epochs(3):
            s.now += 4  # shuffles files
            s.train(a)
        self.assertEqual([u.ended - u.began for u in s.finish()], [12, 12, 12])

    def test_work_after_some_of_the_passes(self):
        s = Script()
        a = s.loader(3)
        for epoch in s.epochs(5):
            s.train(a)
            s.now += 9 if epoch % 2 == 0 else 0  # evaluates without a loader
        self.assertEqual([u.ended - u.began for u in s.finish()], [17, 8, 17, 8, 17])

    def test_evaluations_of_the_last_epoch_only(self):
        s = Script()
        a, v = s.loader(3), s.loader(2)
        for epoch in s.epochs(2):
            s.train(a)
            if epoch == 1:
                s.evaluate(v)
                end = s.now + 1  # the time between a pass and the next epoch
        s.evaluate(v)  # after the loop
        s.finish()
        self.assertEqual([len(u.evaluations) for u in s.units], [0, 1])
        self.assertEqual(s.units[-1].ended, end)

    def test_evaluations_between_two_loops(self):
        s, ends = Script(), []
        a, v = s.loader(3), s.loader(2)
        for fold in range(2):
            for _ in s.epochs(2, fold):
                s.train(a)
            ends.append(s.now)
            s.evaluate(v)
        s.finish()
        self.assertEqual([u.ended for u in s.units][1::2], [end + 1 for end in ends])  # as between epochs

    def test_left_within_an_epoch(self):
        for is_error in (False, True):
            s = Script()
            a, v = s.loader(10), s.loader(2)
            for epoch in s.epochs(2):
                s.train(a, limit=4 if epoch else None)
                if not epoch:
                    s.evaluate(v)
            self.check(s.finish(is_error), [10])

    def test_evaluations_only(self):
        s = Script()
        for _ in s.epochs(3):
            s.evaluate(s.loader(4))
        s.finish()
        self.assertEqual(s.units, [])


if __name__ == "__main__":
    unittest.main()
