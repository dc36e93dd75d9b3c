from common import ROUNDS, data
from sklearn.ensemble import GradientBoostingClassifier

GradientBoostingClassifier(n_estimators=ROUNDS, verbose=2).fit(*data(512))
