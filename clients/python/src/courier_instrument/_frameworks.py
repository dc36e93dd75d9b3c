"""The frameworks that have epochs or rounds, and the loggers. Each function attaches to a module."""

import inspect

from ._guard import observe, quietly
from ._session import Fit, clock, session
from ._torch import saving, tracker

DATASET_WORDS = "val", "eval", "test", "dev", "hold", "train", "learn"  # in names of data sets


def _by_name(reactions):
    """An observer of a function that is called with the name of an event as its second argument."""
    return lambda call: reactions.get(call.args[1], lambda call: None)(call)


def _end(call):
    session().end_fit()


# Keras 3 and tf_keras: the list of callbacks that every fit and evaluation has.

_data = None  # adapter of the last iterator over data, and when it was made


def keras_callbacks(module):
    def train_began(call):
        global _data
        own, parameters = call.args[0], getattr(call.args[0], "params", None) or {}
        (adapter, began), _data = _data or (None, clock()), None
        size = getattr(adapter, "batch_size", None) or getattr(getattr(adapter, "py_dataset", None), "batch_size", None)
        total, size = parameters.get("epochs"), size if type(size) is int else None
        if not tracker().fit_is_step(getattr(own, "model", own), total, size, began):
            Fit("keras", total, batch_size=size).steps = parameters.get("steps")

    def epoch_ended(call):  # before the callbacks of the script, which may take long or stop the training
        fit = session().fit
        # A metric without a prefix is of the training.
        values = {k if k == "loss" or k.startswith("val_") else "train_" + k: v
                  for k, v in dict(call.get(2, "logs") or {}).items()}
        if fit is None:
            _log("", values)
        else:
            fit.unit(call.get(1, "epoch") + 1, values, batches=fit.steps, steps=fit.steps)

    def test_ended(call):
        session().evaluated({"test_" + k: v for k, v in dict(call.get(1, "logs") or {}).items()})

    owner = module.CallbackList
    observe(owner, "on_train_begin", after=train_began)
    observe(owner, "on_epoch_begin", after=lambda call: session().fit and session().fit.begin_unit())
    observe(owner, "on_epoch_end", before=epoch_ended)
    observe(owner, "on_test_begin", after=lambda call: session().evaluates())
    observe(owner, "on_test_end", after=test_ended)
    observe(owner, "on_train_end", after=lambda call: _end(call) if session().fit else tracker().here())


def keras_data(module):
    def created(call):  # by each fit, evaluation and prediction, before it begins
        global _data
        _data = getattr(call.args[0], "data_adapter", None), clock()
        if session().fit is None:
            tracker().here(search=True)

    observe(module.EpochIterator, "__init__", after=created)


def keras_model(module):
    _observe_step(module.Trainer, "train_on_batch")
    saving(module.Model)


# Lightning 2

def lightning(module):
    def train_began(call):
        trainer = call.args[0]
        size = getattr(getattr(trainer, "train_dataloader", None), "batch_size", None)
        Fit("lightning", trainer.max_epochs if (trainer.max_epochs or 0) > 0 else None, batch_size=size)

    def epoch_ended(call):
        # The second of two calls is that of the callbacks that save checkpoints and stop the training.
        if call.kwargs.get("monitoring_callbacks") is not False:
            trainer = call.args[0]
            session().fit.unit(trainer.current_epoch + 1, dict(trainer.callback_metrics))

    observe(module, "_call_callback_hooks", after=_by_name({
        "on_train_start": train_began,
        "on_train_epoch_start": lambda call: session().fit.begin_unit(),
        "on_validation_start": lambda call: session().evaluates(),
        "on_validation_end": lambda call: session().evaluated(),
        "on_train_epoch_end": epoch_ended,
        "on_train_end": _end,
        "on_exception": _end,
    }))


# The Trainer of Hugging Face

def huggingface(module):
    def train_began(call):
        Fit("huggingface", call.args[3].num_train_epochs or None, batch_size=call.args[2].train_batch_size)

    def epoch_ended(call):  # its evaluation follows
        state = call.args[3]
        is_within = abs(state.epoch - round(state.epoch)) > 0.001
        if not is_within or not state.global_step >= state.max_steps > 0:
            session().fit.unit(int(state.epoch + 0.999), is_held=True)

    observe(module.CallbackHandler, "call_event", after=_by_name({
        "on_train_begin": train_began,
        "on_epoch_begin": lambda call: session().fit.begin_unit(),
        "on_epoch_end": epoch_ended,
        "on_log": lambda call: session().fit and session().fit.log(call.kwargs.get("logs")),
        "on_evaluate": lambda call: session().fit and session().fit.log(call.kwargs.get("metrics")),
        "on_train_end": _end,
    }))


# Boosting: a callback is added to the arguments of a training.

def _observe_rounds(owner, name, begin):
    """begin(call) returns the callbacks that are added to those of a call, if it begins a training that has them."""
    signature = inspect.signature(vars(owner)[name])

    def before(call):
        call.note = "callbacks" in signature.parameters and begin(call)
        if call.note:
            bound = signature.bind(*call.args, **call.kwargs)
            given = bound.arguments.get("callbacks")
            given = list(given) if isinstance(given, (list, tuple, set)) else [given] * (given is not None)
            bound.arguments["callbacks"] = given + call.note
            call.args, call.kwargs = bound.args, bound.kwargs

    def always(call):
        if call.note:
            session().end_fit()

    observe(owner, name, before=before, always=always)


@quietly
def _begin_rounds(source):
    Fit(source, unit="round")


@quietly
def _round(number, results):
    """A round has ended. results: (set, metric, value). Names of sets are free: without a telling one,
    the last of several sets is the held-out one, as early stopping takes it. That a single set is not
    the training data is not certain."""
    results = list(results)
    values = {}
    for name, metric, value in results:
        is_last = name == results[-1][0] != results[0][0]
        if not any(part in name.lower() for part in DATASET_WORDS):
            name = "valid" if is_last else "train"
        values["%s_%s" % (name, metric)] = value
    session().fit.unit(number, values)


def _results(sets):
    """The results of a round from the series of each metric, by its set."""
    for name, metrics in (sets or {}).items():
        for metric, values in metrics.items():
            yield name, metric, values[-1][0] if isinstance(values[-1], tuple) else values[-1]


def xgboost(module):  # its train and cv, and the wrappers for scikit-learn, have a container of callbacks
    owner = module.CallbackContainer
    observe(owner, "before_training", before=lambda call: _begin_rounds("xgboost"))
    observe(owner, "after_iteration", after=lambda call: _round(session().fit.last + 1, _results(call.args[0].history)))
    observe(owner, "after_training", before=_end)


def lightgbm(module):
    class Observer:
        order = 5  # before early stopping, which raises an exception in its last round

        def __init__(self, before_iteration):
            self.before_iteration = before_iteration

        def __call__(self, env):
            if not self.before_iteration:
                _round(env.iteration + 1 - env.begin_iteration,
                       (r[:3] for r in env.evaluation_result_list or []))
            elif env.iteration == env.begin_iteration:
                _begin_rounds("lightgbm")

    for name in ("train", "cv"):
        _observe_rounds(module, name, lambda call: [Observer(True), Observer(False)])


def catboost(module):
    class Observer:
        computed = 0  # values so far: metric_period leaves rounds out

        def after_iteration(self, info):
            before = self.computed
            self.computed = sum(len(values) for metrics in info.metrics.values() for values in metrics.values())
            _round(info.iteration, (("train" if name == "learn" else "valid", metric, value)
                                    for name, metric, value in _results(info.metrics) if self.computed > before))
            return True

    def begin(call):  # callbacks exist only for training on CPUs
        if call.args[0].get_param("task_type") not in (None, "CPU"):
            return None
        _begin_rounds("catboost")
        return [Observer()]

    _observe_rounds(module.CatBoost, "_fit", begin)


# scikit-learn

def perceptron(module):
    def before(call):
        own, samples = call.args[0], call.args[1].shape[0]
        if call.args[-1] is True:  # incremental: a partial fit
            _step_begins(call)
            return
        size = min(200 if own.batch_size == "auto" else own.batch_size, samples)
        call.note = lambda call: tracker().here()
        if not tracker().fit_is_step(own, own.max_iter, int(size), clock()):
            Fit("sklearn", own.max_iter, batch_size=int(size))
            call.note = _end

    def always(call):
        (call.note or _step_ended)(call)

    def epoch_ended(call):
        own, fit = call.args[0], session().fit
        values = {"train_loss": own.loss_curve_[-1]}
        if own.early_stopping:
            name = "val_accuracy" if hasattr(own, "classes_") else "val_r2"
            values[name] = own.validation_scores_[-1]
        fit.unit(fit.last + 1, values)

    owner = module.BaseMultilayerPerceptron
    observe(owner, "_fit_stochastic", before=before, always=always)
    observe(owner, "_update_no_improvement_count", after=lambda call: session().fit and epoch_ended(call))


def gradient_boosting(module):
    owner = module.BaseGradientBoosting
    observe(owner, "_fit_stages", before=lambda call: _begin_rounds("sklearn"), always=_end)
    observe(owner, "_fit_stage", after=lambda call: _round(call.get(1, "i") + 1, ()))


def linear_model(module):
    _observe_step(module.BaseSGDClassifier, "partial_fit")
    _observe_step(module.BaseSGDRegressor, "partial_fit")


def _observe_step(owner, name):
    """A call of the method is a step of the script's own loop."""
    observe(owner, name, before=_step_begins, after=_step_ended)


def _step_begins(call):
    tracker().cleared()


def _step_ended(call):
    shape = getattr(call.get(1, "X", call.kwargs.get("x")), "shape", None)
    tracker().step(call.args[0], clock(), int(shape[0]) if shape else None)


# Loggers: values that the script gives to them.

def _log(name, value):
    if isinstance(value, dict):
        for key, item in value.items():
            _log("%s/%s" % (name, key) if name else str(key), item)
    else:
        session().value(name, value)


def _observe_log(owner, function, index, value, name=None):
    """The function is called with a name and a value, or with a dictionary of values."""
    observe(owner, function, after=lambda call: _log(
        call.get(index - 1, name) if name else "", call.get(index, value)))


def summary_writer(module):
    _observe_log(module.SummaryWriter, "add_scalar", 2, "scalar_value", "tag")
    _observe_log(module.SummaryWriter, "add_scalars", 2, "tag_scalar_dict", "main_tag")


def wandb(module):
    _observe_log(module.Run, "log", 1, "data")


def mlflow(module):
    _observe_log(module, "log_metric", 1, "value", "key")
    _observe_log(module, "log_metrics", 0, "metrics")
