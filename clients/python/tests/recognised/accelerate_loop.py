import torch
from accelerate import Accelerator
from common import BATCH, EPOCHS, report, tensors

accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(32, 2)
model, optimizer, loader = accelerator.prepare(
    model, torch.optim.AdamW(model.parameters()),
    torch.utils.data.DataLoader(tensors(), BATCH, shuffle=True))
for epoch in range(1, EPOCHS + 1):
    right = 0
    for x, y in loader:
        with accelerator.accumulate(model):
            logits = model(x)
            loss = torch.nn.functional.cross_entropy(logits, y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        right += (logits.argmax(1) == y).sum().item()
    report(epoch, loss.item(), right / 4096)
