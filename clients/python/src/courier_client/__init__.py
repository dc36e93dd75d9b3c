"""Report training epochs to Courier, and follow its advice.

    with courier_client.Job("resnet", batch_size=64, epochs=10) as job:
        for epoch in job.epochs():
            loss = train()
            epoch.report(loss=loss, accuracy=validate())

Under ``courier run`` the epochs go to its side channel. Elsewhere they go to the NATS servers of
``COURIER_NATS_URL``. Without either, nothing happens. Only rank 0 reports, and no method raises an
exception into the training.
"""

from ._client import Client, RequestError
from ._job import Advice, EpochHandle, Interval, Job
from ._replies import Alternative, JobAdvice, JobStatus

__all__ = ["Advice", "Alternative", "Client", "EpochHandle", "Interval", "Job", "JobAdvice", "JobStatus",
           "RequestError"]
