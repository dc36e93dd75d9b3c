import torch
from common import BATCH, EPOCHS, report, tensors

x, y = tensors().tensors
model = torch.nn.Linear(32, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(1, EPOCHS + 1):
    for i in range(0, len(x), BATCH):
        loss = torch.nn.functional.cross_entropy(model(x[i:i + BATCH]), y[i:i + BATCH])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    report(epoch, loss.item(), (model(x).argmax(1) == y).float().mean().item())
