"""Data of the trainings in this directory, and the printed epochs of their own loops."""

import time

import courier_client
import numpy as np

EPOCHS, ROUNDS, BATCH = 4, 12, 64
job = courier_client.Job("recognised", batch_size=BATCH, epochs=EPOCHS)


def data(samples=4096):
    random = np.random.default_rng(1)
    x = random.normal(size=(samples, 32)).astype("float32")
    return x, (x.sum(axis=1) > 0).astype("int64")


def tensors():
    import torch

    torch.manual_seed(1)
    return torch.utils.data.TensorDataset(*map(torch.from_numpy, data()))


def report(epoch, loss, accuracy):
    global began
    now = time.monotonic()
    print(f"Epoch {epoch}/{EPOCHS}: loss {loss:.4f}, val_accuracy {accuracy:.4f}", flush=True)
    job.epoch(epoch, seconds=now - began, loss=loss, accuracy=accuracy)
    began = now


began = time.monotonic()
