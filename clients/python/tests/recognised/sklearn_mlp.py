from common import BATCH, EPOCHS, data
from sklearn.neural_network import MLPClassifier

MLPClassifier((64,), batch_size=BATCH, max_iter=EPOCHS, early_stopping=True, verbose=True).fit(*data())
