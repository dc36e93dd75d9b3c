"""Where the events of a job go."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import os
import queue
import socket
import threading
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Tuple

from . import _identity as identity

if TYPE_CHECKING:
    from typing_extensions import ParamSpec  # in typing since Python 3.10

    P = ParamSpec("P")

log = logging.getLogger("courier_client")

Event = Dict[str, Any]


class Transport:
    """Takes epochs and drops them: there is no server."""

    def start(self, setting: Event) -> None:
        """Reports the start of the job."""

    def epoch(self, fields: Event) -> None:
        """Reports an epoch."""

    def end(self, outcome: str, fields: Event) -> None:
        """Reports the end of the job, and waits for a few seconds until everything is sent."""

    def advised_batch_size(self) -> Optional[int]:
        """The batch size of the last advice to change it; None without one."""
        return None

    def cancellation(self) -> Optional[str]:
        """Why the job was cancelled; None if it was not, or if its process gets a signal."""
        return None


class Channel(Transport):
    """The side channel of courier run: a Unix socket that takes a JSON object for each epoch."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(5)
        self._socket.connect(path)

    def epoch(self, fields: Event) -> None:
        self._socket.sendall(json.dumps(fields, allow_nan=False).encode() + b"\n")

    def end(self, outcome: str, fields: Event) -> None:
        self._socket.close()


class Nats(Transport):
    """Events over NATS JetStream, sent by one background thread. A training never waits for it."""

    _CAPACITY = 10_000  # events that wait while NATS is unreachable; later ones are dropped
    _HEARTBEAT_SECONDS = 10.0
    _PATIENCE_SECONDS = 5.0  # of the end, for events that are not sent yet

    def __init__(self, url: str, job_id: str, is_new: bool) -> None:
        self._url = url
        self._job_id = job_id
        self._run = 1
        self._is_new = is_new
        self._setting: Event = {}
        self._advised: Optional[int] = None
        self._cancellation: Optional[str] = None
        self._events: "queue.Queue[Tuple[str, Event]]" = queue.Queue(self._CAPACITY)
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._main, name="courier", daemon=True)
        self._thread.start()

    def start(self, setting: Event) -> None:
        self._setting = setting
        self._put("started", {
            "node_cores": os.cpu_count() or 1,
            "heartbeat_seconds": self._HEARTBEAT_SECONDS,
        })

    def epoch(self, fields: Event) -> None:
        event = dict(fields, duration_source="reported", node_cores=os.cpu_count() or 1)
        event["duration_seconds"] = event.pop("seconds")
        if event["duration_seconds"]:
            self._put("epoch", event)

    def end(self, outcome: str, fields: Event) -> None:
        self._put(outcome, dict(fields, outcome=outcome))
        self._is_closing.set()
        self._thread.join(self._PATIENCE_SECONDS)

    def advised_batch_size(self) -> Optional[int]:
        return self._advised

    def cancellation(self) -> Optional[str]:
        return self._cancellation

    def _put(self, kind: str, fields: Event) -> None:
        event = {"at": now(), "job_id": self._job_id, **self._setting, **fields}
        try:
            self._events.put_nowait((kind, event))
        except queue.Full:
            log.warning("event dropped: NATS has been unreachable for too long")

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:  # the training must go on
            log.warning("events are not sent to %s: %s", self._url, error)

    async def _serve(self) -> None:
        import nats

        connection = None
        while connection is None:
            try:
                connection = await nats.connect(
                    **identity.connection(self._url), connect_timeout=2, max_reconnect_attempts=-1)
            except Exception as error:
                if self._is_closing.is_set():
                    raise
                log.debug("NATS is not reachable yet: %s", error)
                await asyncio.sleep(1)
        try:
            if not self._is_new:
                self._run = await self._next_run(connection)
            await connection.subscribe(f"job.{self._job_id}.advice", cb=self._advise)
            await connection.subscribe(f"job.{self._job_id}.cancelled", cb=self._cancel)
            beat = asyncio.ensure_future(self._beat(connection))
            await self._publish_all(connection)
            beat.cancel()
            await self._send_heartbeat(connection, "last", ended=True)
        finally:
            await connection.close()

    async def _next_run(self, connection: Any) -> int:
        """The number of this run: one more than the advisor knows."""
        try:
            request = json.dumps({"id": self._job_id}).encode()
            reply = await connection.request("job.status", request, timeout=2)
            return int(json.loads(reply.data).get("run", 0)) + 1
        except Exception:  # as in courier run: a number that no counted run has
            return int(time.time() - datetime(2020, 1, 1, tzinfo=timezone.utc).timestamp())

    async def _publish_all(self, connection: Any) -> None:
        while True:
            try:
                kind, event = self._events.get_nowait()
            except queue.Empty:
                if self._is_closing.is_set():
                    return
                await asyncio.sleep(0.05)
                continue
            name = event["epoch"] if kind == "epoch" else kind
            event.update(run=self._run, event_id=f"{self._job_id}/{self._run}/{name}")
            await self._publish(connection, f"job.{self._job_id}.{kind}", event)

    async def _publish(self, connection: Any, subject: str, event: Event) -> None:
        """Publishes until it is acknowledged. The message ID makes repetitions harmless. The events of a
        person go through the advisor, which may refuse them."""
        data = json.dumps(event, allow_nan=False).encode()
        while True:
            try:
                if not identity.person():
                    await connection.jetstream().publish(
                        subject, data, timeout=2, headers={"Nats-Msg-Id": event["event_id"]})
                    return
                reply = await connection.request(identity.subject(subject), data, timeout=2)
                status = (reply.headers or {}).get("Nats-Service-Error-Code", "")
                if status.startswith("5"):
                    raise OSError(reply.data.decode())
                if status:
                    log.warning("%s is refused: %s", subject, reply.data.decode())
                return
            except Exception as error:
                if self._is_closing.is_set():
                    raise
                log.debug("%s not published yet: %s", subject, error)
                await asyncio.sleep(1)

    async def _beat(self, connection: Any) -> None:
        number = 0
        while True:
            await asyncio.sleep(self._HEARTBEAT_SECONDS)
            number += 1
            await self._send_heartbeat(connection, str(number))

    async def _send_heartbeat(self, connection: Any, number: str, **fields: bool) -> None:
        event = {"event_id": f"{self._job_id}/{self._run}/alive/{number}", "at": now(),
                 "job_id": self._job_id, "run": self._run, **fields}
        alive = identity.subject(f"job.{self._job_id}.alive")
        await connection.publish(alive, json.dumps(event).encode())

    async def _advise(self, message: Any) -> None:
        try:
            advice = json.loads(message.data)
            if advice.get("action") == "change_batch_size":
                self._advised = int(advice["chosen"]["batch_size"])
            elif advice.get("action") == "keep":
                self._advised = None
        except Exception as error:
            log.debug("advice not understood: %s", error)

    async def _cancel(self, message: Any) -> None:
        try:
            reason = json.loads(message.data).get("reason")
        except ValueError:
            reason = None
        self._cancellation = str(reason or "cancelled by request")
        log.warning("the job is cancelled: %s", self._cancellation)


def now() -> str:
    """The time as RFC 3339 in UTC."""
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")


def quietly(method: Callable[P, None]) -> Callable[P, None]:
    """Turns exceptions of a method into one log message, because the training must go on.

    A type checker sees the parameters of the method, and refuses a wrong call.
    """
    reported = set()

    @functools.wraps(method)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(*args, **kwargs)
        except Exception as error:
            if method.__name__ not in reported:
                reported.add(method.__name__)
                log.warning("%s: %s", method.__name__, error)

    return wrapper
