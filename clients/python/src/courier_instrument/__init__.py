"""Measures a training from inside its process, without a change of the script.

``start`` installs an import hook and does nothing else: no framework is imported, no file is opened and
no thread is started. When the training imports a framework, a function of this package attaches to it.
What it observes goes to the side channel of ``courier run``.
"""

import sys

# Modules of frameworks, with the function that attaches to each after its execution, as
# "module:function". The module is imported only then.
HOOKS = {
    "torch.utils.data.dataloader": "_torch:loaders",
    "torch.nn.modules.module": "_torch:gradients",
    "torch.optim.optimizer": "_torch:optimizers",
    "torch.serialization": "_torch:saving",
    "safetensors.torch": "_torch:saving",
    "jax._src.pjit": "_torch:traces",
    "keras.src.callbacks.callback_list": "_frameworks:keras_callbacks",
    "keras.src.trainers.epoch_iterator": "_frameworks:keras_data",
    "keras.src.models.model": "_frameworks:keras_model",
    "tf_keras.src.callbacks": "_frameworks:keras_callbacks",
    "lightning.pytorch.trainer.call": "_frameworks:lightning",
    "pytorch_lightning.trainer.call": "_frameworks:lightning",
    "transformers.trainer_callback": "_frameworks:huggingface",
    "xgboost.callback": "_frameworks:xgboost",
    "lightgbm.engine": "_frameworks:lightgbm",
    "catboost.core": "_frameworks:catboost",
    "sklearn.neural_network._multilayer_perceptron": "_frameworks:perceptron",
    "sklearn.ensemble._gb": "_frameworks:gradient_boosting",
    "sklearn.linear_model._stochastic_gradient": "_frameworks:linear_model",
    "torch.utils.tensorboard.writer": "_frameworks:summary_writer",
    "tensorboardX.writer": "_frameworks:summary_writer",
    "wandb.sdk.wandb_run": "_frameworks:wandb",
    "mlflow.tracking.fluent": "_frameworks:mlflow",
}


class Finder:
    """A meta path finder that asks the other ones for a module with a hook, and lets the loader that they
    return run the hook after the module. The loader and the spec stay theirs, because much code looks at
    them (``inspect``, ``importlib.resources``, ``pkgutil``)."""

    def find_spec(self, name, path=None, target=None):
        if name not in HOOKS:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec is not None:
                _attach(spec)
                return spec
        return None


def _attach(spec):
    loader = spec.loader
    execute = getattr(loader, "exec_module", None)

    def exec_module(module):
        if module.__name__ != spec.name:  # a loader may load several modules
            return execute(module)
        vars(loader).pop("exec_module", None)
        execute(module)
        from . import _guard  # at the first framework only: it imports more

        _guard.run_hook(HOOKS[spec.name], module)

    if execute is not None and hasattr(loader, "__dict__"):
        loader.exec_module = exec_module


def start():
    """Installs the import hook. A second call does nothing."""
    if not any(isinstance(f, Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, Finder())
