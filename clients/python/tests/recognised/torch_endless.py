"""The iterator of the loader never ends, as that of ultralytics, and no loop shows the epochs."""

import torch
from common import BATCH, EPOCHS, report, tensors


class Again:
    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        while True:
            yield from self.sampler


class Endless(torch.utils.data.DataLoader):
    iterator = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        object.__setattr__(self, "batch_sampler", Again(self.batch_sampler))

    def __len__(self):
        return len(self.batch_sampler.sampler)

    def __iter__(self):
        if self.iterator is None:
            self.iterator = self._get_iterator()
        return (next(self.iterator) for _ in range(len(self)))


def train(done):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = sum((model(x).argmax(1) == y).sum().item() for x, y in held_out) / 4096
    report(done + 1, loss.item(), accuracy)
    return done + 1


loader, held_out = Endless(tensors(), BATCH, shuffle=True), Endless(tensors(), BATCH)
model = torch.nn.Linear(32, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
done = 0
while done < EPOCHS:
    done = train(done)
