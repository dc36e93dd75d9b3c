"""Rounds of XGBoost, LightGBM and CatBoost: a callback is added to the arguments of a training."""

import sys

from ._guard import failed, patch, quietly
from ._names import HELD_OUT, TRAINING, words_of
from ._session import Fit


class Rounds:
    """The rounds of one training."""

    def __init__(self, source, total):
        self._source, self._total, self._fit = source, total, None

    @quietly
    def begin(self, total=None):
        if self._fit is None:
            self._fit = Fit(self._source, total or self._total, "round")

    @quietly
    def round(self, number, results):
        """results: (set, metric, value) after a round."""
        self.begin()
        sets = list(dict.fromkeys(r[0] for r in results))
        self._fit.unit(number, {_named(name, metric, sets): v for name, metric, v in results})

    @quietly
    def end(self):
        if self._fit is not None:
            self._fit.end()


def _named(name, metric, sets):
    """Names of sets are free: without a telling one, the last of several sets is the held-out one, as
    early stopping takes it. That a single set is not the training data is not certain."""
    words = words_of(name)
    if any(w in HELD_OUT or w in TRAINING for w in words):
        return "%s_%s" % (name, metric)
    return ("valid_%s" if len(sets) > 1 and name == sets[-1] else "train_%s") % metric


def _patch_training(owner, name, make_observer):
    """make_observer(args, kwargs) returns the changed arguments and the rounds."""

    def make(original):
        def train(*args, **kwargs):
            rounds = None
            try:
                args, kwargs, rounds = make_observer(args, kwargs)
            except Exception as error:
                failed(name, error)
            try:
                return original(*args, **kwargs)
            finally:
                if rounds is not None:
                    rounds.end()

        return train

    patch(owner, name, make)


def xgboost(module):
    """xgboost.training: the wrappers for scikit-learn call train, too."""

    class Observer(sys.modules["xgboost.callback"].TrainingCallback):
        def __init__(self, rounds):
            super().__init__()
            self.rounds = rounds

        def before_training(self, model):
            self.rounds.begin()
            self.first = model.num_boosted_rounds()
            return model

        def after_iteration(self, model, epoch, evals_log):
            self.rounds.round(epoch + 1 - self.first, [
                (name, metric, values[-1][0] if isinstance(values[-1], tuple) else values[-1])
                for name, metrics in evals_log.items() for metric, values in metrics.items()])
            return False

    def observe(args, kwargs):
        rounds = Rounds("xgboost", args[2] if len(args) > 2 else kwargs.get("num_boost_round", 10))
        callbacks = list(kwargs.get("callbacks") or []) + [Observer(rounds)]
        return args, dict(kwargs, callbacks=callbacks), rounds

    _patch_training(module, "train", observe)
    _patch_training(module, "cv", observe)


def lightgbm(module):
    """lightgbm.engine"""

    class Observer:
        order = 5  # before early stopping, which raises an exception in its last round

        def __init__(self, rounds, before_iteration):
            self.rounds, self.before_iteration = rounds, before_iteration

        def __call__(self, env):
            if self.before_iteration:
                self.rounds.begin(env.end_iteration - env.begin_iteration)
            else:
                self.rounds.round(env.iteration + 1 - env.begin_iteration,
                                  [r[:3] for r in env.evaluation_result_list or []])

    def observe(args, kwargs):
        if len(args) > 8:  # callbacks were passed by position
            return args, kwargs, None
        rounds = Rounds("lightgbm", None)
        callbacks = list(kwargs.get("callbacks") or [])
        callbacks += [Observer(rounds, True), Observer(rounds, False)]
        return args, dict(kwargs, callbacks=callbacks), rounds

    _patch_training(module, "train", observe)
    _patch_training(module, "cv", observe)


def catboost(module):
    """catboost.core: callbacks exist only for training on CPUs."""
    import inspect

    signature = inspect.signature(module.CatBoost._fit)

    class Observer:
        def __init__(self, rounds):
            self.rounds = rounds

        def after_iteration(self, info):
            self.rounds.round(info.iteration, [
                ("train" if name == "learn" else "valid", metric, values[-1])
                for name, metrics in (info.metrics or {}).items()
                for metric, values in metrics.items()])
            return True

    def observe(args, kwargs):
        own = args[0]
        if "callbacks" not in signature.parameters or own.get_param("task_type") not in (None, "CPU"):
            return args, kwargs, None
        call = signature.bind(*args, **kwargs)  # fit passes everything by position
        given = call.arguments.get("callbacks")
        given = [] if given is None else given if isinstance(given, list) else [given]
        rounds = Rounds("catboost", own.get_param("iterations") or 1000)
        rounds.begin()
        call.arguments["callbacks"] = given + [Observer(rounds)]
        return call.args, call.kwargs, rounds

    _patch_training(module.CatBoost, "_fit", observe)
