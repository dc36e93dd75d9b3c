"""Keras 3 and tf_keras: the list of callbacks that every fit and evaluation has."""

from ._guard import around, patch
from ._names import HELD_OUT, words_of
from ._session import Fit, clock, session

_adapter = None  # of the last iterator over data


class _Held:
    """The only epoch of a fit. A script that calls fit in its own loop evaluates and saves between two
    calls. So the epoch ends when the next fit begins, and the last one ends after its evaluation."""

    def __init__(self, fit, number, values, measured):
        self.fit, self.number, self.values, self.measured = fit, number, values, measured
        self.ended = clock()

    def evaluated(self, logs, seconds):
        self.ended = clock()
        self.measured["evaluation"] = (self.measured.get("evaluation") or 0) + seconds
        self.values.update(("test_" + k, v) for k, v in dict(logs or {}).items())

    def report(self, ended):
        self.fit.unit(self.number, self.values, ended=ended, **self.measured)


def callback_list(module):
    """keras.src.callbacks.callback_list, tf_keras.src.callbacks"""
    cls = module.CallbackList

    def train_began(args, kwargs, result, note):
        global _adapter
        session().report_held(clock())
        own, parameters = args[0], getattr(args[0], "params", None) or {}
        size = getattr(_adapter, "batch_size", None)
        _adapter = None
        own._courier_fit = Fit("keras", parameters.get("epochs"),
                               batch_size=size if type(size) is int else None)

    def epoch_began(args, kwargs, result, note):
        own = args[0]
        own.__dict__.pop("_courier_evaluation", None)
        epoch = args[1] if len(args) > 1 else kwargs.get("epoch")
        own.__dict__.setdefault("_courier_first", epoch)
        own._courier_fit.begin_unit()

    def before_epoch_end(args, kwargs):
        # Before the callbacks of the script, which may take long or stop the training.
        own = args[0]
        epoch = args[1] if len(args) > 1 else kwargs.get("epoch")
        logs = args[2] if len(args) > 2 else kwargs.get("logs")
        steps = (getattr(own, "params", None) or {}).get("steps")
        # A metric without a prefix is of the training.
        values = {k if k == "loss" or words_of(k)[0] in HELD_OUT else "train_" + k: v
                  for k, v in dict(logs or {}).items()}
        measured = {"batches": steps, "steps": steps,
                    "evaluation": own.__dict__.pop("_courier_evaluation", None)}
        fit = own._courier_fit
        if fit.total is not None and fit.total - own.__dict__.get("_courier_first", 0) == 1:
            session().held = _Held(fit, epoch + 1, values, measured)
        else:
            fit.unit(epoch + 1, values, **measured)

    def test_began(args, kwargs, result, note):
        args[0]._courier_test = clock()

    def test_ended(args, kwargs, result, note):
        own = args[0]
        began = own.__dict__.pop("_courier_test", None)
        if began is not None and session().fits:
            own._courier_evaluation = own.__dict__.get("_courier_evaluation", 0) + clock() - began
        elif began is not None and session().held is not None:
            logs = args[1] if len(args) > 1 else kwargs.get("logs")
            session().held.evaluated(logs, clock() - began)

    def train_ended(args, kwargs, result, note):
        args[0].__dict__.pop("_courier_first", None)
        args[0].__dict__.pop("_courier_fit").end()

    patch(cls, "on_train_begin", around(after=train_began))
    patch(cls, "on_epoch_begin", around(after=epoch_began))
    patch(cls, "on_epoch_end", around(before=before_epoch_end))
    patch(cls, "on_test_begin", around(after=test_began))
    patch(cls, "on_test_end", around(after=test_ended))
    patch(cls, "on_train_end", around(after=train_ended))


def epoch_iterator(module):
    """keras.src.trainers.epoch_iterator: that of a fit is made just before its training begins."""

    def created(args, kwargs, result, note):
        global _adapter
        _adapter = getattr(args[0], "data_adapter", None)

    patch(module.EpochIterator, "__init__", around(after=created))
