"""Measures a training from inside its process, without a change of the script.

``start`` installs import hooks and does nothing else: no framework is imported, no file is opened and
no thread is started. When the training imports a framework, the module of this package for that
framework attaches to it. What it observes goes to the side channel of ``courier run``.
"""

import sys

from . import _imports

__all__ = ["start"]

# Modules of frameworks, with the function that attaches to each after its execution, as
# "module:function". The module is imported only then.
HOOKS = {
    "torch.utils.data.dataloader": "_torch:loaders",
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
    "xgboost.training": "_frameworks:xgboost",
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


def start():
    """Installs the import hooks. A second call does nothing."""
    if not any(isinstance(f, _imports.Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _imports.Finder(__name__, HOOKS))
