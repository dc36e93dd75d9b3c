import xgboost
from common import ROUNDS, data, job
from courier_client.xgboost import DeadlineCallback

matrix = xgboost.DMatrix(*data())
callback = DeadlineCallback(1000, total=ROUNDS, job=job)
xgboost.train({"objective": "binary:logistic", "eval_metric": ["logloss", "error"]}, matrix, ROUNDS,
              evals=[(matrix, "train"), (matrix, "valid")], callbacks=[callback])
assert callback.rounds.predicted_rounds == ROUNDS
