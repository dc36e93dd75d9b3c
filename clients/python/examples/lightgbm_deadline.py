"""LightGBM under a deadline: as many rounds as fit into five seconds. Needs lightgbm."""

import lightgbm
import numpy as np
from courier_client.lightgbm import DeadlineCallback

random = np.random.default_rng(1)
x = random.normal(size=(20_000, 50))
y = (x[:, :10].sum(axis=1) + random.normal(size=len(x)) > 0).astype(int)
training = lightgbm.Dataset(x[:15_000], y[:15_000])
validation = lightgbm.Dataset(x[15_000:], y[15_000:], reference=training)

deadline = DeadlineCallback(5)
model = lightgbm.train({"objective": "binary", "metric": "binary_error", "verbose": -1},
                       training, 10_000, valid_sets=[validation], valid_names=["valid"],
                       callbacks=[deadline])
print(f"{model.current_iteration()} rounds; after the first ones, "
      f"{deadline.rounds.predicted_rounds} were predicted")
