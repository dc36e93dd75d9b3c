"""A training loop of its own: logistic regression on points in the plane.

Run it with ``courier run --model plane --cpus 1 --batch-sizes 16,64 --epochs 5 --slo 1m --
python loop.py --batch-size {batch} --epochs {epochs}``, or alone with COURIER_NATS_URL set.
"""

import argparse
import math
import random

import courier_client

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--epochs", type=int, default=5)
args = parser.parse_args()

random.seed(1)
points = [(random.gauss(0, 1), random.gauss(0, 1)) for _ in range(4000)]
rows = [(x, y, 1.0 if x + 2 * y > 0.5 else 0.0) for x, y in points]
training, validation = rows[:3000], rows[3000:]
weights = [0.0, 0.0, 0.0]


def predict(x: float, y: float) -> float:
    return 1 / (1 + math.exp(-(weights[0] * x + weights[1] * y + weights[2])))


with courier_client.Job("plane", batch_size=args.batch_size, epochs=args.epochs) as job:
    for epoch in job.epochs():
        size = job.follow_advice().batch_size
        for start in range(0, len(training), size):
            batch = training[start:start + size]
            errors = [(predict(x, y) - label, x, y) for x, y, label in batch]
            for i, values in enumerate(((e * x for e, x, _ in errors),
                                        (e * y for e, _, y in errors),
                                        (e for e, _, _ in errors))):
                weights[i] -= 0.5 * sum(values) / len(batch)
        right = sum((predict(x, y) > 0.5) == (label > 0.5) for x, y, label in validation)
        epoch.report(accuracy=right / len(validation), validation_samples=len(validation),
                     batch_size=size)
        print(f"{job.eta() or 'unknown time'} left")
