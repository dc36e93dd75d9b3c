import torch
from common import BATCH, EPOCHS, report, tensors

x, y = tensors().tensors
weight = torch.zeros(32, 2, requires_grad=True)
for epoch in range(1, EPOCHS + 1):
    for i in range(0, len(x), BATCH):
        loss = torch.nn.functional.cross_entropy(x[i:i + BATCH] @ weight, y[i:i + BATCH])
        loss.backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
            weight.grad.zero_()
    report(epoch, loss.item(), (x @ weight).argmax(1).eq(y).float().mean().item())
