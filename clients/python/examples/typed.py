"""Calls that a type checker accepts."""

import courier_client

job = courier_client.Job("resnet", batch_size=64, epochs=2)
job.epoch(1, seconds=1.5, loss=0.5, accuracy=0.75)
job.close()

client = courier_client.Client(user="ada")


def ask() -> None:
    advice = client.predict("resnet", cpus=[2, 4], epochs=10, slo="10m", labels={"team": "vision"})
    print(advice["decision"])
