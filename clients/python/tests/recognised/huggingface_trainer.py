import torch
from common import BATCH, EPOCHS, data, job
from courier_client.huggingface import CourierCallback
from transformers import Trainer, TrainingArguments


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(32, 2)

    def forward(self, x, labels):
        logits = self.layer(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


rows = [{"x": a, "labels": int(b)} for a, b in zip(*data())]
arguments = TrainingArguments(
    "out", num_train_epochs=EPOCHS, per_device_train_batch_size=BATCH, eval_strategy="epoch",
    logging_strategy="epoch", save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True)
Trainer(Model(), arguments, train_dataset=rows, eval_dataset=rows[:512], callbacks=[CourierCallback(job)],
        compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())},
        ).train()
