"""Requests to the advisor from a script or a notebook."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import threading
from typing import Any, Dict, List, Optional, Sequence

Reply = Dict[str, Any]  # the fields of the JSON reply, as in docs/reference/messages.md


class RequestError(Exception):
    """A request that was refused. code: invalid, not_found, conflict, forbidden, unavailable."""

    def __init__(self, code: str, message: str, field: str = "") -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.code = code
        self.field = field


class Client:
    """Sends requests to the advisor. Each call connects, so a notebook may keep the client for days.

    url: NATS servers; default: COURIER_NATS_URL. user: name of the submitting user;
    default: the user of this process. timeout: seconds for one answer.
    """

    def __init__(
        self, url: Optional[str] = None, *, user: Optional[str] = None, timeout: float = 5.0
    ) -> None:
        self._url = url or os.environ.get("COURIER_NATS_URL") or "nats://127.0.0.1:4222"
        self._user = user if user is not None else getpass.getuser()
        self._timeout = timeout

    def predict(
        self,
        model: str,
        *,
        cpus: Sequence[int] = (1,),
        workers: Sequence[int] = (),
        epochs: Optional[int] = None,
        slo: Optional[str] = None,
        batch_sizes: Sequence[int] = (),
        dataset: str = "",
        job_id: str = "",
        max_epochs: Optional[int] = None,
        target_accuracy: Optional[float] = None,
        confidence: Optional[float] = None,
        nodes: Sequence[str] = (),
        labels: Optional[Dict[str, str]] = None,
    ) -> Reply:
        """The advice for a job: its decision, the chosen alternative, and all alternatives.

        slo: time from the submission to the end, such as "10m". workers: numbers of workers to
        choose from; cpus are those of each worker.
        """
        fields = dict(locals(), user=self._user)
        return self._ask("job.predict", _request(fields))

    def submit(self, model: str, **fields: Any) -> Reply:
        """Submits a job with the fields of predict, and returns the advice."""
        return self._ask("job.submit", _request(dict(fields, model=model, user=self._user)))

    def status(self, job_id: str) -> Reply:
        """The state of a job, with its probability and the advised change."""
        return self._ask("job.status", {"id": job_id})

    def jobs(self, limit: int = 100, **selection: Any) -> List[Reply]:
        """Jobs, newest first; selection: fields of job.list, such as state="open" or user="ada".

        pandas.DataFrame(client.jobs()) has a row for each.
        """
        reply = self._ask("job.list", dict(selection, limit=limit))
        return list(reply["jobs"])

    def _ask(self, subject: str, request: Reply) -> Reply:
        return _run(self._exchange(subject, json.dumps(request, allow_nan=False).encode()))

    async def _exchange(self, subject: str, data: bytes) -> Reply:
        import nats
        import nats.errors

        try:
            # Without a bound of attempts, nats-py tries an unreachable server for two minutes.
            connection = await nats.connect(
                self._url, connect_timeout=2, allow_reconnect=False, name="courier-client",
                max_reconnect_attempts=1, reconnect_time_wait=0)
        except (OSError, nats.errors.Error) as error:
            raise RequestError("unavailable", f"{self._url}: {error}") from error
        try:
            message = await connection.request(subject, data, timeout=self._timeout)
        except nats.errors.Error as error:
            raise RequestError("unavailable", f"no answer to {subject}: {error}") from error
        finally:
            await connection.close()
        reply: Reply = json.loads(message.data)
        if (message.headers or {}).get("Nats-Service-Error-Code"):
            raise RequestError(reply["code"], reply["message"], reply.get("field", ""))
        return reply


def _request(fields: Reply) -> Reply:
    """The fields of a request without those that are not given."""
    named = {"id" if name == "job_id" else name: value for name, value in fields.items()
             if name != "self" and value not in (None, "", ())}
    return {name: list(value) if isinstance(value, tuple) else value
            for name, value in named.items()}


def _run(answer: Any) -> Any:
    """Waits for an answer, also in a notebook, whose event loop runs already."""
    result: Dict[str, Any] = {}

    def wait() -> None:
        try:
            result["value"] = asyncio.run(answer)
        except BaseException as error:  # raised again by the caller
            result["error"] = error

    thread = threading.Thread(target=wait, name="courier-client")
    thread.start()
    thread.join()
    if "error" in result:
        raise result["error"]
    return result["value"]
