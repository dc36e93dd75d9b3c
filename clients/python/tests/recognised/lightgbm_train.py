import lightgbm
from common import ROUNDS, data, job
from courier_client.lightgbm import DeadlineCallback

parameters = {"objective": "binary", "metric": ["binary_logloss", "binary_error"], "verbose": -1,
              "num_threads": 1}
rows = lightgbm.Dataset(*data())
callback = DeadlineCallback(1000, job=job)
lightgbm.train(parameters, rows, ROUNDS, valid_sets=[rows], valid_names=["valid"],
               callbacks=[callback, lightgbm.log_evaluation(1)])
assert callback.rounds.predicted_rounds == ROUNDS
