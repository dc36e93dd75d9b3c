"""Requests to the advisor from a script or a notebook."""

from __future__ import annotations

import asyncio
import functools
import getpass
import json
import os
import threading
from typing import (
    TYPE_CHECKING, Any, Awaitable, Callable, Coroutine, Dict, List, Optional, Sequence, TypeVar, cast)

from . import _identity as identity
from ._replies import JobAdvice, JobStatus

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from typing_extensions import Concatenate, ParamSpec  # in typing since Python 3.10

    P = ParamSpec("P")

Fields = Dict[str, Any]
T = TypeVar("T")
_PAGE = 1000  # jobs of one answer


class RequestError(Exception):
    """A request that was refused. code: invalid, not_found, conflict, forbidden, unavailable."""

    def __init__(self, code: str, message: str, field: str = "") -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.code = code
        self.field = field


def _asks(
    subject: str, request: Callable[Concatenate[Client, P], Fields], doc: str
) -> Callable[Concatenate[Client, P], JobAdvice]:
    """A method with the parameters of request, which sends what that returns."""

    @functools.wraps(request)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> JobAdvice:
        return cast(JobAdvice, self._ask(subject, request(self, *args, **kwargs)))

    method.__name__ = subject.split(".")[1]
    method.__doc__ = f"{doc}\n\n        {request.__doc__}"
    return method


def _framed(
    rows: Callable[Concatenate[Client, P], Sequence[Any]]
) -> Callable[Concatenate[Client, P], pandas.DataFrame]:
    """A method with the parameters of rows, which returns them as a pandas.DataFrame."""

    @functools.wraps(rows)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> pandas.DataFrame:
        import pandas

        frame = pandas.DataFrame(list(rows(self, *args, **kwargs)))
        for name in frame.columns:
            if name == "at" or name.endswith("_at"):
                frame[name] = pandas.to_datetime(frame[name], utc=True, format="ISO8601")
        return frame

    method.__name__ = rows.__name__ + "_frame"
    method.__doc__ = f"The rows of {rows.__name__} as a pandas.DataFrame, with instants as such."
    return method


class Client:
    """Sends requests to the advisor. Each call connects, so a notebook may keep the client for days.

    url: NATS servers; default: COURIER_NATS_URL. The files and the context of the variables COURIER_NATS_…
    apply as to the commands of courier. user: name of the submitting user; default: the user of the nkey,
    or of this process. timeout: seconds for one answer.
    """

    def __init__(
        self, url: Optional[str] = None, *, user: Optional[str] = None, timeout: float = 5.0
    ) -> None:
        self._url = url or os.environ.get("COURIER_NATS_URL") or "nats://127.0.0.1:4222"
        self._user = user if user is not None else identity.person() or getpass.getuser()
        self._timeout = timeout

    def _request(
        self,
        model: str,
        *,
        cpus: Sequence[int] = (1,),
        workers: Sequence[int] = (),
        loaders: Sequence[int] = (),
        epochs: Optional[int] = None,
        slo: Optional[str] = None,
        batch_sizes: Sequence[int] = (),
        dataset: str = "",
        job_id: str = "",
        max_epochs: Optional[int] = None,
        target_accuracy: Optional[float] = None,
        may_stop_early: bool = False,
        elastic: bool = False,
        confidence: Optional[float] = None,
        nodes: Sequence[str] = (),
        new_nodes: bool = False,
        labels: Optional[Dict[str, str]] = None,
    ) -> Fields:
        """slo: time from the submission to the end, such as "10m". cpus, workers, loaders and
        batch_sizes: numbers to choose from; cpus and loaders are those of each worker.
        """
        fields = dict(locals(), user=self._user, id=job_id)
        del fields["self"], fields["job_id"]
        return _given(fields)

    predict = _asks("job.predict", _request, "The advice for a job that is not submitted.")
    submit = _asks("job.submit", _request, "Submits a job, and returns its advice.")

    def status(self, job_id: str) -> JobStatus:
        """The state of a job, with its probability and the advised change."""
        return cast(JobStatus, self._ask("job.status", {"id": job_id}))

    def jobs(
        self,
        limit: int = 100,
        *,
        state: str = "",
        search: str = "",
        user: str = "",
        model: str = "",
        dataset: str = "",
        node: str = "",
        label: str = "",
        since: str = "",
        until: str = "",
        at_risk: bool = False,
        missed: bool = False,
        brief: bool = False,
        sort: str = "",
    ) -> List[JobStatus]:
        """Jobs, newest first, with all of the given properties.

        state: "open", "ended" or states, separated by commas. label: "name" or "name=value".
        since, until: instants, such as "2026-11-28T08:00:00Z". sort: as of courier jobs.
        """
        selection = _given({name: v for name, v in locals().items() if name not in ("self", "limit")})
        jobs: List[JobStatus] = []
        while len(jobs) < limit:
            page = self._ask("job.list", dict(selection, limit=min(limit - len(jobs), _PAGE)))
            jobs += page["jobs"]
            if sort or not page.get("next"):
                break
            selection["after"] = page["next"]
        return jobs

    def epochs(self, *job_ids: str) -> List[Fields]:
        """The epochs of jobs, in the order of the log, which keeps them for a while; SQL has all."""
        return _run(self._connected(lambda c: _read_epochs(c, job_ids, self._timeout)))

    jobs_frame = _framed(jobs)
    epochs_frame = _framed(epochs)

    def _ask(self, subject: str, request: Fields) -> Fields:
        data = json.dumps(request, allow_nan=False).encode()

        async def exchange(connection: Any) -> Any:
            return await connection.request(identity.subject(subject), data, timeout=self._timeout)

        message = _run(self._connected(exchange))
        reply: Fields = json.loads(message.data)
        if (message.headers or {}).get("Nats-Service-Error-Code"):
            raise RequestError(reply["code"], reply["message"], reply.get("field", ""))
        return reply

    async def _connected(self, use: Callable[[Any], Awaitable[T]]) -> T:
        import nats
        import nats.errors

        try:
            # Without a bound of attempts, nats-py tries an unreachable server for two minutes.
            connection = await nats.connect(
                **identity.connection(self._url), connect_timeout=2, allow_reconnect=False,
                max_reconnect_attempts=1, reconnect_time_wait=0)
        except (OSError, nats.errors.Error) as error:
            raise RequestError("unavailable", f"{self._url}: {error}") from error
        try:
            return await use(connection)
        except nats.errors.Error as error:
            raise RequestError("unavailable", f"no answer: {error}") from error
        finally:
            await connection.close()


async def _read_epochs(connection: Any, job_ids: Sequence[str], timeout: float) -> List[Fields]:
    import nats.js.errors

    jetstream = connection.jetstream()
    found: Dict[str, Fields] = {}  # by identity, because an event may be stored twice
    for job_id in job_ids:
        subject = f"job.{job_id}.epoch"
        try:
            last = await jetstream.get_last_msg("JOB", subject)
        except nats.js.errors.NotFoundError:
            continue
        epochs = await jetstream.subscribe(subject, stream="JOB", ordered_consumer=True)
        while True:
            message = await epochs.next_msg(timeout)
            event = json.loads(message.data)
            found.setdefault(event["event_id"], event)
            if message.metadata.sequence.stream >= last.seq:
                break
        await epochs.unsubscribe()
    return list(found.values())


def _given(fields: Fields) -> Fields:
    """The fields that are given, with lists for tuples."""
    return {name: list(value) if isinstance(value, tuple) else value
            for name, value in fields.items() if value not in (None, "", (), False)}


def _run(answer: Coroutine[Any, Any, T]) -> T:
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
    return cast(T, result["value"])
