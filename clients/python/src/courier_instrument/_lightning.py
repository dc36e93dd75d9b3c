"""Lightning 2: a callback at the end of the list of the trainer, for the duration of a fit."""

import sys

from ._guard import failed, patch, quietly
from ._session import Fit, clock


def trainer(module):
    """lightning.pytorch.trainer.trainer, pytorch_lightning.trainer.trainer"""
    package = "lightning.pytorch" if module.__name__.startswith("lightning.") else "pytorch_lightning"

    def make(original):
        def fit(self, *args, **kwargs):
            observer = None
            try:
                observer = _observer(sys.modules[package].callbacks.Callback)()
                self.callbacks.append(observer)
            except Exception as error:
                failed("lightning", error)
            try:
                return original(self, *args, **kwargs)
            finally:
                if observer is not None:
                    remove(self, observer)

        return fit

    @quietly
    def remove(trainer, observer):
        trainer.callbacks[:] = [c for c in trainer.callbacks if c is not observer]
        observer.end()

    patch(module.Trainer, "fit", make)


def _observer(base):
    class Observer(base):
        """Has no state, so that it adds nothing to checkpoints."""

        fit = None
        _validation = _evaluation = 0.0

        @quietly
        def on_train_start(self, trainer, pl_module):
            epochs = trainer.max_epochs
            self.fit = Fit("lightning", epochs if epochs and epochs > 0 else None,
                           batch_size=_batch_size(trainer))

        @quietly
        def on_train_epoch_start(self, trainer, pl_module):
            self.fit.begin_unit()
            self._evaluation = 0.0

        @quietly
        def on_validation_start(self, trainer, pl_module):
            self._validation = clock()

        @quietly
        def on_validation_end(self, trainer, pl_module):
            self._evaluation += clock() - self._validation

        @quietly
        def on_train_epoch_end(self, trainer, pl_module):
            self.fit.unit(trainer.current_epoch + 1, dict(trainer.callback_metrics),
                          evaluation=self._evaluation or None)

        def end(self):
            if self.fit is not None:
                self.fit.end()

    return Observer


def _batch_size(trainer):
    try:
        loader = trainer.train_dataloader
        return getattr(loader, "batch_size", None)
    except Exception:
        return None
