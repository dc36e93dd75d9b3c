import torch
from common import BATCH, EPOCHS, report, tensors
from torch.utils.tensorboard import SummaryWriter

loader = torch.utils.data.DataLoader(tensors(), BATCH, shuffle=True)
model = torch.nn.Linear(32, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
writer = SummaryWriter("logs")
for epoch in range(1, EPOCHS + 1):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = sum((model(x).argmax(1) == y).sum().item() for x, y in loader) / 4096
    writer.add_scalar("train/loss", loss.item(), epoch)
    writer.add_scalar("val/accuracy", accuracy, epoch)
    report(epoch, loss.item(), accuracy)
writer.close()
