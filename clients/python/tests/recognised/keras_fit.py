import keras
from common import BATCH, EPOCHS, data, job
from courier_client.keras import CourierCallback

x, y = data()
model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(2)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, validation_split=0.2, verbose=2,
          callbacks=[CourierCallback(job), keras.callbacks.CSVLogger("log.csv")])
