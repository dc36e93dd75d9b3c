import lightning
import torch
from common import BATCH, EPOCHS, job, tensors
from courier_client.lightning import CourierCallback
from lightning.pytorch.loggers import CSVLogger


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(32, 2)

    def training_step(self, batch, _):
        loss = torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        self.log("val_acc", (self.layer(batch[0]).argmax(1) == batch[1]).float().mean(), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


loader = torch.utils.data.DataLoader(tensors(), BATCH)
lightning.Trainer(max_epochs=EPOCHS, logger=CSVLogger("."), accelerator="cpu", enable_checkpointing=False,
                  callbacks=[CourierCallback(job)]).fit(Module(), loader, loader)
