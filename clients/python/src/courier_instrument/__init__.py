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
    "safetensors.torch": "_torch:safetensors",
    "keras.src.callbacks.callback_list": "_keras:callback_list",
    "keras.src.trainers.epoch_iterator": "_keras:epoch_iterator",
    "keras.src.models.model": "_sklearn:train_on_batch",
    "jax._src.pjit": "_torch:traces",
    "tf_keras.src.callbacks": "_keras:callback_list",
    "lightning.pytorch.trainer.trainer": "_lightning:trainer",
    "pytorch_lightning.trainer.trainer": "_lightning:trainer",
    "transformers.trainer_callback": "_huggingface:handler",
    "xgboost.training": "_boosting:xgboost",
    "lightgbm.engine": "_boosting:lightgbm",
    "catboost.core": "_boosting:catboost",
    "sklearn.neural_network._multilayer_perceptron": "_sklearn:perceptron",
    "sklearn.ensemble._gb": "_sklearn:gradient_boosting",
    "sklearn.linear_model._stochastic_gradient": "_sklearn:partial_fits",
    "torch.utils.tensorboard.writer": "_loggers:summary_writer",
    "tensorboardX.writer": "_loggers:summary_writer",
    "wandb.sdk.wandb_run": "_loggers:wandb",
    "mlflow.tracking.fluent": "_loggers:mlflow",
}


def start():
    """Installs the import hooks. A second call does nothing."""
    if not any(isinstance(f, _imports.Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _imports.Finder(__name__, HOOKS))
