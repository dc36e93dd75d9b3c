from common import BATCH, EPOCHS, data, report
from sklearn.linear_model import SGDClassifier

x, y = data()
model = SGDClassifier(loss="log_loss", random_state=1)
for epoch in range(1, EPOCHS + 1):
    for i in range(0, len(x), BATCH):
        model.partial_fit(x[i:i + BATCH], y[i:i + BATCH], classes=[0, 1])
    report(epoch, 0.5, model.score(x, y))
