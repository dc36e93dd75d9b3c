import catboost
from common import ROUNDS, data, job
from courier_client.catboost import DeadlineCallback

x, y = data()
callback = DeadlineCallback(1000, total=ROUNDS, job=job)
catboost.CatBoostClassifier(iterations=ROUNDS, custom_metric=["Accuracy"], allow_writing_files=False).fit(
    x, y, eval_set=(x, y), callbacks=[callback])
assert callback.rounds.predicted_rounds == ROUNDS
job.close()
