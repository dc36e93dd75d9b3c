"""Tests of the script's own loop over epochs, on every Python from 3.9."""

import gc
import os
import sys
import time
import types
import unittest
import weakref

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src"))

from courier_instrument._loop import Position, batch_size  # noqa: E402
from courier_instrument._passes import Loader  # noqa: E402
from courier_instrument._torch import Torch  # noqa: E402


class Arguments:
    def __init__(self):
        self.epochs, self.start, self.batch_size = 3, 2, 4


class LoopTest(unittest.TestCase):
    def setUp(self):
        self.position, self.seen = Position(), []

    def step(self):
        self.seen.append(self.position.read(is_step=True))

    def values(self):
        return [p and p[0] for p in self.seen]

    def test_by_the_name_of_the_variable(self):
        def train(batches):
            for _ in range(batches):
                self.step()

        for epoch in range(2):
            train(2)
        self.assertEqual(self.values(), [0, 0, 1, 1])
        self.assertEqual(self.position.loop.counts_from, 0)

    def test_by_the_range(self):
        args = Arguments()
        for fold in range(2):
            for _ in range(args.start, args.epochs + 1):
                self.step()
        self.assertEqual(self.values(), [2, 3, 2, 3])
        self.assertEqual(len(set(self.seen)), 4)  # the folds differ
        self.assertEqual(self.position.loop.counts_from, 1)

    def test_other_loops(self):
        epochs = epoch = 3
        for _ in range(epochs * 2):
            self.step()
        for i, _ in enumerate(tuple(range(3)), start=epoch):
            self.step()
        for epoch in (0.5, 1.5):
            self.step()
        self.assertEqual(set(self.values()), {None})

    def test_loops_within(self):
        """A loop over batches within one over epochs is not one itself."""
        epochs = 2
        for e in range(epochs):
            for i, (x, y) in enumerate([(1, 2), (3, 4)]):
                for _ in range(2):
                    self.step()
        self.assertEqual(self.values(), [0, 0, 0, 0, 1, 1, 1, 1])
        self.assertEqual(len(set(self.seen)), 2)

    def test_the_outermost_loop(self):
        for epoch in range(2):
            for client in range(2):
                for ep in range(3):
                    self.step()
        self.assertEqual(len(set(self.seen)), 2)

    def test_rounds_of_clients(self):
        """Each client has epochs of its own. Epochs directly within a round are the script's."""
        args = Arguments()
        args.rounds, args.local_ep = 2, 2
        for rnd in range(args.rounds):
            for client in range(2):
                for it in range(args.local_ep):
                    self.step()
        self.assertEqual(self.values(), [0] * 4 + [1] * 4)
        self.seen.clear()
        for global_round in range(2):
            for epoch in range(args.local_ep):
                self.step()
        for iter in range(args.epochs):
            self.step()
        self.assertEqual(self.values(), [0, 0, 1, 1, 0, 1, 2])
        self.seen.clear()

        def train():
            for epoch in range(2):
                self.step()

        for round_idx in range(2):
            train()
        self.assertEqual(self.values(), [0, 1, 0, 1])
        self.setUp()
        for round_idx in range(2):
            [train() for client in range(2)]
        self.assertEqual(self.values(), [0] * 4 + [1] * 4)

    def test_within_a_loop_over_steps(self):
        """As in reinforcement learning."""
        num_updates = steps = 2
        for update in range(1, 3):
            for epoch in range(2):
                self.step()
        for _ in range(num_updates):
            for epoch in range(2):
                self.step()
        while steps:
            steps -= 1
            for epoch in range(2):
                self.step()
        self.assertEqual(set(self.values()), {None})

    def test_steps_that_form_no_epochs(self):
        max_steps, seen = 2, []
        for step in range(max_steps):
            self.step()
            seen.append(self.position.counts_steps)
        for step, _ in enumerate("ab"):  # over a loader
            self.step()
            seen.append(self.position.counts_steps)
        for epoch in range(1):
            for step in range(max_steps):
                self.step()
                seen.append(self.position.counts_steps)
        self.assertEqual(seen, [True, True, False, False, False, False])

    def test_while_something_is_not(self):
        """Such a condition counts no steps, whatever its name is."""
        iteration_done, seen = [], []
        for i in range(2):
            iteration_done.clear()
            while not iteration_done:
                self.step()
                seen.append(self.position.counts_steps)
                iteration_done.append(i)
        self.assertEqual(seen, [False, False])

    def test_while(self):
        epoch, is_done = 0, False
        while not is_done and epoch < 10:
            self.step()
            epoch += 1
            is_done = epoch == 2
        self.assertEqual(self.values(), [0, 1])
        self.assertIsNone(self.position.loop.counts_from)

    def test_an_attribute(self):
        args = Arguments()
        for args.epoch in range(args.start, args.epochs):
            self.step()
        for args.start in range(args.epochs):
            self.step()
        self.assertEqual(self.values(), [2, 0, 1, 2])

    def test_batch_size(self):
        def seen():
            self.seen.append(batch_size())

        args, bs = Arguments(), 3
        for _ in range(0, 4, args.batch_size):
            seen()
        for epoch in range(1):
            for i in range(9 // bs - 2):
                seen()
            for i in range(2, 6, 4):  # the variable has the name
                seen()
            seen()  # perhaps all of the data
        self.assertEqual(self.seen, [4, 3, 3, None])

    def test_an_attribute_named_like_a_function(self):
        """model.eval() does not give the function a dictionary of its variables."""
        class Model:
            def eval(self):
                pass

        def train(model):
            for epoch in range(2):
                self.step()
                model.eval()

        train(Model())
        self.assertEqual(self.values(), [0, 1])

    def test_after_the_loop(self):
        for epoch in range(2):
            self.step()
        self.step()
        for epoch in range(2):
            self.step()
        self.assertEqual(self.values(), [0, 1, None, 0, 1])

    def test_has_no_effect(self):
        """A deleted variable is gone, and the result of locals() stays as it is."""

        class Tensor:
            pass

        def train():
            big = Tensor()
            gone = weakref.ref(big)
            for epoch in range(1):
                self.step()
                del big
                gc.collect()
            return gone()

        def own():
            before = locals()
            for epoch in range(1):
                self.step()
            return before

        self.assertIsNone(train())
        self.assertEqual(self.values(), [0])
        self.assertEqual(own(), {"self": self} if sys.version_info < (3, 13) else own())


class TrainingsTest(unittest.TestCase):
    def test_another_training_of_the_script_does_not_count(self):
        units, nothing = [], lambda *args, **fields: {}
        torch = Torch(types.SimpleNamespace(
            fit=None, base_for=lambda number: 0, announce=nothing, send=nothing, logged_between=nothing,
            unit=lambda fit, number, *fields: units.append(number)))

        def train(loader, optimizer):
            p = torch.begin_pass(Loader(loader, 0.0, 2), time.perf_counter())
            for _ in range(2):
                torch.deliver(p, p.last, time.perf_counter())
                torch.step(optimizer, time.perf_counter())
            torch.end(p, True, time.perf_counter())

        first, second = object(), object()
        for epoch in range(2):
            train(1, first)
        for epoch in range(2, 4):  # a second phase
            train(2, first)
        for epoch in range(3):
            train(3, second)
        torch.finish(time.perf_counter())
        self.assertEqual(units, [1, 2, 3, 4])


if __name__ == "__main__":
    unittest.main()
