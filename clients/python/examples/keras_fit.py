"""Keras: one more argument of fit. Needs keras with a backend."""

import argparse

import keras
import numpy as np
from courier_client.keras import CourierCallback

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()

random = np.random.default_rng(1)
x = random.normal(size=(5000, 20)).astype("float32")
y = (x[:, :5].sum(axis=1) > 0).astype("int32")

model = keras.Sequential([keras.layers.Dense(32, "relu"), keras.layers.Dense(2)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
              metrics=["accuracy"])
model.fit(x, y, batch_size=args.batch_size, epochs=args.epochs, validation_split=0.2,
          callbacks=[CourierCallback()])
