"""What the instrumentation costs a loop of PyTorch: python overhead.py [MILLISECONDS OF A STEP]

Hooked and original functions take turns, and the fastest ten of many steps count, so that a busy machine
disturbs little.
"""

import os
import socket
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "src"))
server = socket.socket(socket.AF_UNIX)  # nothing reads: the kernel keeps the messages
server.bind(os.environ.setdefault("COURIER_INSTRUMENT_CHANNEL", os.path.join(tempfile.mkdtemp(), "c")))
server.listen(4)

import courier_instrument  # noqa: E402

courier_instrument.start()
import torch  # noqa: E402
from torch.optim import optimizer as module  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset, dataloader  # noqa: E402

STEPS, WINDOW = 200, 10
owner, base = dataloader._BaseDataLoaderIter, module.Optimizer
hooked = owner.__next__, base.zero_grad, dict(module._global_optimizer_post_hooks), torch.Tensor.backward


def switch(on):
    owner.__next__ = hooked[0] if on else hooked[0].__wrapped__
    base.zero_grad = hooked[1] if on else hooked[1].__wrapped__
    torch.Tensor.backward = hooked[3] if on else hooked[3].__wrapped__
    module._global_optimizer_post_hooks.clear()
    module._global_optimizer_post_hooks.update(hooked[2] if on else {})


def train(seconds):
    """Seconds of a step, in the fastest window of an epoch."""
    torch.set_num_threads(1)
    loader = DataLoader(TensorDataset(torch.zeros(STEPS * 8, 1)), batch_size=8)
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], 0.1)
    fastest, began = 1.0, time.perf_counter()
    for i, _ in enumerate(loader):
        until = time.perf_counter() + seconds
        optimizer.zero_grad()
        weight.sum().backward()
        while time.perf_counter() < until:
            pass
        optimizer.step()
        if i % WINDOW == WINDOW - 1:
            now = time.perf_counter()
            fastest, began = min(fastest, (now - began) / WINDOW), now
    return fastest


def main(milliseconds=2.0):
    for step in (0.0, milliseconds / 1e3):
        fastest = {True: 1.0, False: 1.0}
        for epoch in range(30):
            for on in fastest:
                switch(on)
                fastest[on] = min(fastest[on], train(step))
        cost = fastest[True] - fastest[False]
        print("steps of %.3f ms: %+.1f us, %+.2f %%" % (
            fastest[False] * 1e3, cost * 1e6, 100 * cost / fastest[False]))


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
