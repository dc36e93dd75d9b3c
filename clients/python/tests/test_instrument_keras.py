"""The epochs of Keras, from the calls that a fit makes to its list of callbacks."""

import os
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src"))

from courier_instrument import _frameworks, _session, _torch  # noqa: E402


class CallbackList:
    def __init__(self, epochs):
        self.params = {"epochs": epochs, "steps": 20}

    def on_train_begin(self, logs=None):
        pass

    on_train_end = on_test_begin = on_test_end = on_train_begin

    def on_epoch_begin(self, epoch, logs=None):
        pass

    on_epoch_end = on_epoch_begin


class Sent:
    def __init__(self):
        self.units = []

    def send(self, message, may_be_lost=False):
        if message["type"] == "unit":
            self.units.append((message["epoch"], message["seconds"]))
            self.batch_size = message.get("batch_size")

    def flush(self, seconds):
        pass

    def after_fork(self):
        pass


class KerasTest(unittest.TestCase):
    def setUp(self):
        self.now = 100.0
        for module in (_frameworks, _session, _torch):
            patcher = mock.patch.object(module, "clock", lambda: self.now)
            patcher.start()
            self.addCleanup(patcher.stop)
        patcher = mock.patch.object(_session, "_session", None)
        patcher.start()
        self.addCleanup(patcher.stop)
        self.list = type("CallbackList", (CallbackList,), {
            name: CallbackList.__dict__[name] for name in CallbackList.__dict__ if name.startswith("on_")})
        _frameworks.keras_callbacks(types.SimpleNamespace(CallbackList=self.list))
        self.iterator = type("EpochIterator", (), {"__init__": lambda own: None})
        _frameworks.keras_data(types.SimpleNamespace(EpochIterator=self.iterator))
        patcher = mock.patch.object(_frameworks, "_data", None)
        patcher.start()
        self.addCleanup(patcher.stop)
        self.sent = Sent()
        _session.session()._channel = self.sent

    def fit(self, epochs, first=0, seconds=10.0):
        self.data()
        own = self.list(epochs)
        own.on_train_begin()
        for epoch in range(first, epochs):
            own.on_epoch_begin(epoch)
            self.now += seconds
            own.on_epoch_end(epoch, {"loss": 0.5, "accuracy": 0.6})
        own.on_train_end()

    def data(self):
        """The iterator over data of the next fit, evaluation or prediction is made."""
        self.iterator()

    def evaluate(self, seconds=3.0):
        self.data()
        own = self.list(1)
        own.on_test_begin()
        self.now += seconds
        own.on_test_end({"loss": 0.4, "accuracy": 0.7})

    def test_short_epochs_are_sent_in_blocks_after_the_first(self):
        self.fit(12, seconds=0.045)
        self.assertEqual([number for number, _ in self.sent.units], [1, 6, 11, 12])

    def test_fits_of_one_epoch_in_a_loop(self):
        """They are steps of the epochs of the loop, with what the script does before and after them."""
        for epoch in range(3):
            self.data()
            self.now += 2.0  # builds the model
            self.fit(1)
            self.evaluate()
            self.now += 1.0  # prints
        self.data()  # a prediction after the loop
        self.now += 60.0
        _session.session().finish()
        self.assertEqual(self.sent.units, [(1, 16.0), (2, 16.0), (3, 16.0)])

    def test_several_fits_in_an_epoch(self):
        for epoch in range(2):
            for part in "ab":
                self.fit(1)
        self.data()
        _session.session().finish()
        self.assertEqual(self.sent.units, [(1, 20.0), (2, 20.0)])

    def test_fits_of_one_epoch_in_another_loop(self):
        """As when an agent learns, or a file of several is read."""
        for part in range(3):
            self.fit(1)
        _session.session().finish()
        self.assertEqual(self.sent.units, [])

    def test_fits_of_clients(self):
        for round_idx in range(2):
            for client in range(2):
                self.fit(3, seconds=5.0)
        self.data()
        _session.session().finish()
        self.assertEqual(self.sent.units, [(1, 30.0), (2, 30.0)])

    def test_fits_that_count_on(self):
        for epoch in range(2):
            self.fit(epoch + 1, first=epoch)
            self.evaluate()
        self.data()
        _session.session().finish()
        self.assertEqual(self.sent.units, [(1, 13.0), (2, 13.0)])

    def test_batches_of_a_loop(self):
        """The last one is smaller."""
        model = type("Model", (), {"train_on_batch": lambda own, x: setattr(self, "now", self.now + 1)})
        _frameworks.keras_model(types.SimpleNamespace(Trainer=model, Model=model))
        own = model()
        for epoch in range(2):
            for size in (64, 64, 56):
                own.train_on_batch(types.SimpleNamespace(shape=(size, 8)))
        self.data()
        _session.session().finish()
        self.assertEqual((self.sent.units, self.sent.batch_size), ([(1, 3.0), (2, 3.0)], 64))

    def test_a_child_does_not_report_the_epoch_of_its_parent(self):
        self.fit(1)
        _session.session()._after_fork()
        _session.session()._channel = self.sent
        _session.session().finish()
        self.assertEqual(self.sent.units, [])

    def test_a_fit_of_several_epochs(self):
        self.fit(3)
        self.now += 60.0
        _session.session().finish()
        self.assertEqual(self.sent.units, [(1, 10.0), (2, 10.0), (3, 10.0)])


if __name__ == "__main__":
    unittest.main()
