"""Tests without a framework and without a server: python -m unittest discover tests."""

import asyncio
import json
import os
import socket
import tempfile
import threading
import unittest
from unittest import mock

try:
    import nats
except ImportError:  # only NatsTest needs it
    nats = None

import courier_client
from courier_client import _deadline, _environment, _metrics, _transport

CLEAN = {k: v for k, v in os.environ.items()
         if not k.startswith(("COURIER_", "SLURM_")) and k not in ("RANK", "LOCAL_RANK")}


def environment(**variables):
    """The environment of this process with only these variables of Courier."""
    return mock.patch.dict(os.environ, dict(CLEAN, **variables), clear=True)


class Channel:
    """The side channel of a runner."""

    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.dir.name, "epochs")
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(self.path)
        self.server.listen()
        self.lines = []
        self.thread = threading.Thread(target=self._read)
        self.thread.start()
        return self

    def _read(self):
        connection, _ = self.server.accept()
        with connection, connection.makefile() as file:
            self.lines = [json.loads(line) for line in file]

    def __exit__(self, *_):
        self.thread.join(60)
        self.server.close()
        self.dir.cleanup()


class JobTest(unittest.TestCase):
    def test_reports_over_the_side_channel(self):
        with Channel() as channel, environment(COURIER_CHANNEL=channel.path, COURIER_EPOCHS="2"):
            with courier_client.Job("mlp") as job:
                for epoch in job.epochs():
                    epoch.report(loss=0.5, accuracy=0.25 * epoch.number)
        self.assertEqual([line["epoch"] for line in channel.lines], [1, 2])
        self.assertEqual([line["accuracy"] for line in channel.lines], [0.25, 0.5])
        self.assertTrue(all(line["seconds"] >= 0 for line in channel.lines))

    def test_reports_the_advised_loaders(self):
        with tempfile.TemporaryDirectory() as directory, Channel() as channel:
            path = os.path.join(directory, "control.json")
            with environment(COURIER_CHANNEL=channel.path, COURIER_CONTROL=path,
                             COURIER_LOADERS="0", COURIER_EPOCHS="3"):
                with courier_client.Job("mlp") as job:
                    for epoch in job.epochs():
                        epoch.report(loaders=job.follow_advice().loaders)
                        with open(path, "w", encoding="utf-8") as file:
                            json.dump({"batch_size": 8, "loaders": 2 * epoch.number,
                                       "from_epoch": 1 + epoch.number}, file)
        self.assertEqual([line["loaders"] for line in channel.lines], [0, 2, 4])

    def test_reports_the_advised_batch_size_and_cpus(self):
        with tempfile.TemporaryDirectory() as directory, Channel() as channel:
            path = os.path.join(directory, "control.json")
            with environment(COURIER_CHANNEL=channel.path, COURIER_CONTROL=path, COURIER_CPUS="1",
                             COURIER_BATCH_SIZE="8", COURIER_EPOCHS="3"):
                with courier_client.Job("mlp") as job:
                    for epoch in job.epochs():
                        advice = job.follow_advice()
                        epoch.report(batch_size=advice.batch_size, cpus=advice.cpus)
                        with open(path, "w", encoding="utf-8") as file:
                            json.dump({"batch_size": 8, "cpus": 1 + epoch.number,
                                       "from_epoch": 1 + epoch.number}, file)
        self.assertEqual([line["cpus"] for line in channel.lines], [1, 2, 3])
        self.assertEqual([line["batch_size"] for line in channel.lines], [8, 8, 8])

    def test_leaves_out_numbers_that_json_cannot_have(self):
        with Channel() as channel, environment(COURIER_CHANNEL=channel.path):
            with courier_client.Job("mlp") as job:
                job.epoch(seconds=1, loss=float("nan"), accuracy=91.5)
        self.assertEqual(channel.lines, [{"epoch": 1, "seconds": 1}])

    def test_is_silent_without_a_server(self):
        with environment():
            job = courier_client.Job("mlp", batch_size=8, epochs=1)
            job.epoch(seconds=1)
            job.close()

    def test_never_raises_into_the_training(self):
        with environment(COURIER_CHANNEL="/nowhere/channel"):
            courier_client.Job("mlp", batch_size=8).epoch(seconds=1)
        with Channel() as channel, environment(COURIER_CHANNEL=channel.path):
            job = courier_client.Job("mlp")
            with self.assertLogs("courier_client", "WARNING") as logs:
                job.epoch(accuracy="many")
                job.epoch(accuracy="many")
            job.close()
        self.assertEqual(len(logs.output), 1)

    def test_only_the_first_rank_reports(self):
        for variables, want in (({}, True), ({"RANK": "0"}, True), ({"RANK": "1"}, False),
                                ({"RANK": "0", "LOCAL_RANK": "1"}, True),
                                ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, False),
                                ({"OMPI_COMM_WORLD_RANK": "3"}, False)):
            with environment(**variables):
                self.assertEqual(_environment.is_first_rank(), want, variables)

    def test_follows_the_control_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"batch_size": 128, "cpus": 4, "from_epoch": 5,
                       "next_epoch_probability": 0.25, "deadline_at": "2026-11-23T09:30:00Z", "stop": True, "other": 1}, file)
            file.flush()
            with environment(COURIER_CONTROL=file.name):
                job = courier_client.Job("mlp", batch_size=8, epochs=9, cpus=2)
                self.assertEqual(job.follow_advice(), courier_client.Advice(128, 5, True, 4))
                self.assertEqual(job.next_epoch_probability(), 0.25)
                self.assertEqual(job.deadline().hour, 9)
                self.assertEqual(list(job.epochs()), [])
        with environment(COURIER_CONTROL="/nowhere"):
            job = courier_client.Job("mlp", batch_size=8, cpus=2)
            self.assertEqual(job.follow_advice(), courier_client.Advice(8, 1, False, 2))
            self.assertIsNone(job.next_epoch_probability())

    def test_predicts_the_time_left_as_an_interval(self):
        with environment():
            job = courier_client.Job("mlp", batch_size=8, epochs=12)
            job.epoch(seconds=10)
            self.assertIsNone(job.eta())
            job.epoch(seconds=12)
            eta = job.eta()
        self.assertEqual(eta.median, 110)
        self.assertTrue(eta.low < 110 < eta.high)


class MetricsTest(unittest.TestCase):
    def test_prefers_held_out_accuracy_and_training_loss(self):
        for metrics, want in (
            ({"accuracy": 0.9, "loss": 0.2, "val_accuracy": 0.8, "val_loss": 0.3},
             {"accuracy": 0.8, "loss": 0.2}),
            ({"eval_f1": 0.7, "eval_loss": 0.4}, {"accuracy": 0.7, "loss": 0.4}),
            ({"valid_multi_error": 0.25}, {"accuracy": 0.75}),
            ({"val_rmse": 3.5}, {"loss": 3.5}),
            ({"val_accuracy": 91.5, "lr": 0.1, "name": "x"}, {}),
            ({"loss": float("nan")}, {}),
        ):
            self.assertEqual(_metrics.pick(metrics), want, metrics)


class RoundsTest(unittest.TestCase):
    def test_predicts_and_ends_before_the_deadline(self):
        clock = [100.0]
        with mock.patch.object(_deadline.time, "monotonic", lambda: clock[0]), environment():
            rounds = _deadline.Rounds(slo_seconds=10, total=1000)
            done = 0
            while done < 1000:
                clock[0] += 0.1
                done += 1
                if not rounds.add(1 / done):
                    break
        self.assertLessEqual(clock[0], 110)
        self.assertAlmostEqual(done, 99, delta=1)
        self.assertAlmostEqual(rounds.predicted_rounds, 99, delta=1)
        self.assertAlmostEqual(rounds.predicted_value, 0.01, places=3)

    def test_has_no_deadline_without_an_slo(self):
        with environment():
            rounds = _deadline.Rounds(total=10)
            self.assertTrue(all(rounds.add(0.5) for _ in range(10)))
            self.assertIsNone(rounds.predicted_rounds)

    def test_reports_the_first_round_alone(self):
        """It shows the start-up."""
        clock, job = [100.0], mock.Mock()
        with mock.patch.object(_deadline.time, "monotonic", lambda: clock[0]), environment():
            rounds = _deadline.Rounds(total=10, job=job)
            for _ in range(10):
                clock[0] += 0.06
                rounds.add(0.5)
        self.assertEqual([call.args[0] for call in job.epoch.call_args_list], [1, 5, 9, 10])

    def test_extrapolates_a_learning_curve(self):
        values = [(k, 0.9 - 0.5 * k ** -0.5) for k in range(1, 20)]
        self.assertAlmostEqual(_deadline.extrapolate(values, 100), 0.85, places=6)
        self.assertIsNone(_deadline.extrapolate(values[:2], 100))


NATS_URL = os.environ.get("COURIER_TEST_NATS")


@unittest.skipUnless(NATS_URL, "COURIER_TEST_NATS is not set")
class NatsTest(unittest.TestCase):
    """The Go test reads the events that this publishes."""

    def test_publishes_the_events_of_a_job(self):
        with environment(COURIER_NATS_URL=NATS_URL):
            with courier_client.Job("mlp", batch_size=8, epochs=2, cpus=1, job_id="py-1") as job:
                job.epoch(seconds=1.5, loss=0.5, accuracy=0.75)
                job.epoch(seconds=1.25, accuracy=0.875)
            with self.assertRaises(ValueError):
                with courier_client.Job("mlp", batch_size=8, epochs=2, job_id="py-2") as job:
                    raise ValueError("out of memory")

    def test_ends_when_the_job_is_cancelled(self):
        with environment(COURIER_NATS_URL=NATS_URL):
            with courier_client.Job("mlp", batch_size=8, epochs=1000, job_id="py-4") as job:
                for epoch in job.epochs():
                    asyncio.run(cancel("py-4"))  # again, because it may not be subscribed yet
        self.assertLess(epoch.number, 1000)


async def cancel(job_id):
    """Cancels a job as the advisor does."""
    connection = await nats.connect(NATS_URL)
    identity = f"{job_id}/1/cancelled"
    event = {"event_id": identity, "at": _transport.now(), "job_id": job_id, "run": 1,
             "outcome": "cancelled", "reason": "wrong data"}
    await connection.jetstream().publish(f"job.{job_id}.cancelled", json.dumps(event).encode(),
                                         headers={"Nats-Msg-Id": identity})
    await connection.close()


if __name__ == "__main__":
    unittest.main()
