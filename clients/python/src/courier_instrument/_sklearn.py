"""scikit-learn: epochs of multi-layer perceptrons, rounds of gradient boosting, and partial fits, which
are the steps of a loop of the script."""

from ._guard import around, patch, quietly
from ._session import Fit, clock

_fits = {}  # by estimator: attributes would end up in pickled models


def _patch_fit(cls, name, began):
    """The training is within the method; began(estimator, args) returns its Fit."""

    @quietly
    def begin(own, args):
        _fits[id(own)] = began(own, args)

    @quietly
    def end(own):
        fit = _fits.pop(id(own))
        if fit is None:
            _after_step(own, None)
        else:
            fit.end()

    def make(original):
        def fit(self, *args, **kwargs):
            begin(self, args)
            try:
                return original(self, *args, **kwargs)
            finally:
                end(self)

        return fit

    patch(cls, name, make)


def perceptron(module):
    """sklearn.neural_network._multilayer_perceptron"""
    cls = module.BaseMultilayerPerceptron

    def began(own, args):
        if args[-1] is True:  # incremental: a partial fit
            _before_step()
            return None
        samples = args[0].shape[0]
        size = min(200, samples) if own.batch_size == "auto" else min(own.batch_size, samples)
        fit = Fit("sklearn", own.max_iter, batch_size=int(size))
        fit.first = getattr(own, "n_iter_", 0) if own.warm_start else 0
        return fit

    def epoch(args, kwargs, result, note):
        own = args[0]
        fit = _fits[id(own)]
        if fit is None:
            return
        values = {"train_loss": own.loss_curve_[-1]}
        if own.early_stopping:
            values["val_accuracy" if hasattr(own, "classes_") else "val_r2"] = (
                own.validation_scores_[-1])
        fit.unit(own.n_iter_ - fit.first, values)

    _patch_fit(cls, "_fit_stochastic", began)
    patch(cls, "_update_no_improvement_count", around(after=epoch))


def gradient_boosting(module):
    """sklearn.ensemble._gb"""
    cls = module.BaseGradientBoosting

    def stage(args, kwargs, result, note):
        _fits[id(args[0])].unit((args[1] if len(args) > 1 else kwargs.get("i")) + 1)

    _patch_fit(cls, "_fit_stages", lambda own, args: Fit("sklearn", own.n_estimators, "round"))
    patch(cls, "_fit_stage", around(after=stage))


@quietly
def _before_step():
    from ._torch import tracker

    tracker().cleared(None, clock())


@quietly
def _after_step(own, batch):
    from ._torch import tracker

    shape = getattr(batch, "shape", None)
    tracker().step(own, clock(), int(shape[0]) if shape else None)


def _patch_step(cls, name):
    """A call of the method is a step of the script's own loop."""

    def make(original):
        def step(self, *args, **kwargs):
            _before_step()
            result = original(self, *args, **kwargs)
            _after_step(self, args[0] if args else kwargs.get("X", kwargs.get("x")))
            return result

        return step

    patch(cls, name, make)


def partial_fits(module):
    """sklearn.linear_model._stochastic_gradient"""
    _patch_step(module.BaseSGDClassifier, "partial_fit")
    _patch_step(module.BaseSGDRegressor, "partial_fit")


def train_on_batch(module):
    """keras.src.models.model"""
    _patch_step(module.Trainer, "train_on_batch")
