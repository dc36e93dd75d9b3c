"""Real trainings with each framework that is installed; the others are skipped."""

import importlib.util
import tempfile
import unittest

from test_core import Channel, environment

import courier_client


def needs(*modules):
    """Skips a test if one of the modules is missing."""
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


def data(samples=200):
    import numpy as np

    random = np.random.default_rng(1)
    x = random.normal(size=(samples, 8)).astype("float32")
    return x, (x.sum(axis=1) > 0).astype("int32")


class FrameworksTest(unittest.TestCase):
    def reported(self, train, epochs):
        """Trains with a job, and checks that its epochs arrive with accuracies."""
        with Channel() as channel, environment(COURIER_CHANNEL=channel.path, KERAS_BACKEND="jax"):
            train(courier_client.Job("mlp", batch_size=32, epochs=epochs))
        self.assertEqual([line["epoch"] for line in channel.lines], list(range(1, epochs + 1)))
        for line in channel.lines:
            self.assertGreater(line["seconds"], 0)
            self.assertTrue(0 < line["accuracy"] <= 1, line)

    @needs("keras", "jax")
    def test_keras(self):
        def train(job):
            import keras
            from courier_client.keras import CourierCallback

            x, y = data()
            model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(2)])
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            model.compile("adam", loss=loss, metrics=["accuracy"])
            model.fit(x, y, epochs=3, validation_split=0.2, verbose=0,
                      callbacks=[CourierCallback(job)])
        self.reported(train, 3)

    @needs("lightning", "torch")
    def test_lightning(self):
        def train(job):
            import lightning
            import torch
            from courier_client.lightning import CourierCallback

            class Module(lightning.LightningModule):
                def __init__(self):
                    super().__init__()
                    self.layer = torch.nn.Linear(8, 2)

                def training_step(self, batch, _):
                    loss = torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1].long())
                    self.log("train_loss", loss)
                    return loss

                def validation_step(self, batch, _):
                    right = self.layer(batch[0]).argmax(1) == batch[1]
                    self.log("val_acc", right.float().mean())

                def configure_optimizers(self):
                    return torch.optim.Adam(self.parameters())

            x, y = (torch.from_numpy(a) for a in data())
            loader = torch.utils.data.DataLoader(
                torch.utils.data.TensorDataset(x, y), batch_size=32)
            with tempfile.TemporaryDirectory() as root:
                trainer = lightning.Trainer(
                    max_epochs=3, logger=False, enable_checkpointing=False, accelerator="cpu",
                    enable_progress_bar=False, enable_model_summary=False,
                    default_root_dir=root, callbacks=[CourierCallback(job)])
                trainer.fit(Module(), loader, loader)
        self.reported(train, 3)

    @needs("transformers", "torch", "accelerate")
    def test_huggingface(self):
        def train(job):
            import torch
            from courier_client.huggingface import CourierCallback
            from transformers import Trainer, TrainingArguments

            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = torch.nn.Linear(8, 2)

                def forward(self, x, labels):
                    logits = self.layer(x)
                    return {"loss": torch.nn.functional.cross_entropy(logits, labels),
                            "logits": logits}

            x, y = data()
            rows = [{"x": a, "labels": int(b)} for a, b in zip(x, y)]
            with tempfile.TemporaryDirectory() as root:
                arguments = TrainingArguments(
                    output_dir=root, num_train_epochs=3, per_device_train_batch_size=32,
                    eval_strategy="epoch", save_strategy="no", report_to=[], use_cpu=True,
                    disable_tqdm=True)
                Trainer(
                    Model(), arguments, train_dataset=rows, eval_dataset=rows,
                    compute_metrics=lambda p: {
                        "accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())},
                    callbacks=[CourierCallback(job)]).train()
        self.reported(train, 3)

    @needs("xgboost")
    def test_xgboost(self):
        def train(job):
            import xgboost
            from courier_client.xgboost import DeadlineCallback

            x, y = data()
            matrix = xgboost.DMatrix(x, y)
            callback = DeadlineCallback(1000, total=20, job=job)
            xgboost.train({"objective": "binary:logistic", "eval_metric": "error"}, matrix, 20,
                          evals=[(matrix, "valid")], verbose_eval=False, callbacks=[callback])
            self.assertEqual(callback.rounds.predicted_rounds, 20)
            job.close()
        self.rounds(train, 20)

    @needs("lightgbm")
    def test_lightgbm(self):
        def train(job):
            import lightgbm
            from courier_client.lightgbm import DeadlineCallback

            x, y = data()
            rows = lightgbm.Dataset(x, y)
            callback = DeadlineCallback(1000, job=job)
            lightgbm.train({"objective": "binary", "metric": "binary_error", "verbose": -1}, rows, 20,
                           valid_sets=[rows], valid_names=["valid"], callbacks=[callback])
            self.assertEqual(callback.rounds.predicted_rounds, 20)
            job.close()
        self.rounds(train, 20)

    @needs("catboost")
    def test_catboost(self):
        def train(job):
            import catboost
            from courier_client.catboost import DeadlineCallback

            x, y = data()
            callback = DeadlineCallback(1000, total=20, job=job)
            model = catboost.CatBoostClassifier(
                iterations=20, custom_metric=["Accuracy"], verbose=False, allow_writing_files=False)
            model.fit(x, y, eval_set=(x, y), callbacks=[callback])
            self.assertEqual(callback.rounds.predicted_rounds, 20)
            job.close()
        self.rounds(train, 20)

    def rounds(self, train, total):
        """Rounds arrive in blocks; the last one is reported."""
        with Channel() as channel, environment(COURIER_CHANNEL=channel.path):
            train(courier_client.Job("trees", batch_size=32, epochs=total))
        self.assertEqual(channel.lines[-1]["epoch"], total)
        self.assertTrue(0 < channel.lines[-1]["accuracy"] <= 1, channel.lines[-1])

    @needs("lightgbm")
    def test_a_deadline_ends_a_fit_cleanly(self):
        import lightgbm
        from courier_client.lightgbm import DeadlineCallback

        x, y = data(2000)
        with environment():
            callback = DeadlineCallback(0.5)
            model = lightgbm.train({"objective": "binary", "verbose": -1, "num_threads": 1},
                                   lightgbm.Dataset(x, y), 100_000, callbacks=[callback])
        self.assertTrue(5 <= model.current_iteration() < 100_000)


if __name__ == "__main__":
    unittest.main()
