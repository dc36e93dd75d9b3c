"""Writes regressors by LightGBM, and what it predicts by them, for golden_test.go.

    python3 make.py        (lightgbm 4.7.0, numpy 2.4.6; in this folder)

rows.csv holds, for each row, the features and the prediction of each regressor,
with 17 digits. Features have few values, many values, a constant and a negative
range.
"""

import lightgbm
import numpy

random = numpy.random.default_rng(1)
n = 300
x = numpy.column_stack([
    random.choice([64.0, 128.0, 256.0, 512.0], n),
    numpy.round(random.uniform(-5, 5, n), 2),
    numpy.full(n, 7.0),
    random.uniform(0, 1, n) * 1e-3,
])
y = 6e4 / x[:, 0] + 10 * numpy.sin(x[:, 1]) + 2e4 * x[:, 3] + random.normal(0, 3, n)
names = ["batch_size", "angle", "constant", "small"]

fresh = numpy.column_stack([
    random.choice([32.0, 64.0, 128.0, 200.0, 256.0, 512.0, 1024.0], 60),
    numpy.round(random.uniform(-8, 8, 60), 2),
    random.choice([6.0, 7.0, 8.0], 60),
    random.uniform(-1, 2, 60) * 1e-3,
])

regressors = {
    "boosting": dict(objective="regression", learning_rate=0.2),
    "absolute": dict(objective="regression_l1", max_depth=3),
    "huber": dict(objective="huber", alpha=5.0),
    "quantile": dict(objective="quantile", alpha=0.9),
    "monotone": dict(objective="regression", monotone_constraints=[-1, 0, 0, 1]),
    "forest": dict(objective="regression_l1", boosting="rf", bagging_fraction=0.6, bagging_freq=1, feature_fraction=0.8),
    "leaf": dict(objective="regression", min_data_in_leaf=1000),
}

columns = [fresh]
for name, settings in regressors.items():
    settings = {"num_leaves": 7, "min_data_in_leaf": 8, "verbose": -1, "num_threads": 1, "deterministic": True, "seed": 1} | settings
    fitted = lightgbm.train(settings, lightgbm.Dataset(x, y, feature_name=names), 8)
    fitted.save_model(name + ".txt")
    columns.append(fitted.predict(fresh).reshape(-1, 1))

numpy.savetxt("rows.csv", numpy.hstack(columns), delimiter=",", fmt="%.17g", comments="",
              header=",".join(names + list(regressors)))
