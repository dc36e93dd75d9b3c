"""Tests of what a process keeps: its start, its descriptors, its signals, its exit."""

import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "src"))

from courier_instrument._channel import Channel  # noqa: E402


SOURCE = os.path.join(HERE, "..", "src", "courier_instrument")
SITE = tempfile.mkdtemp(prefix="instrumentation-")  # laid out as courier run does
shutil.copytree(SOURCE, os.path.join(SITE, "courier_instrument"))
shutil.copy(os.path.join(SOURCE, "sitecustomize.py"), SITE)
atexit.register(shutil.rmtree, SITE)


def listener(directory):
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.path.join(directory, "channel"))
    server.listen(8)
    return server


class ProcessTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def write(self, name, text):
        path = os.path.join(self.directory.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(textwrap.dedent(text))
        return path

    def python(self, code, *flags, path=(), python=sys.executable, **variables):
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join([SITE, *path]), COURIER_INSTRUMENT_CHANNEL="/none",
                           PYTHONDONTWRITEBYTECODE="1")
        environment.update(variables)
        p = subprocess.run([python, *flags, "-c", textwrap.dedent(code)], env=environment,
                           capture_output=True, text=True, cwd=self.directory.name)
        return p.stdout.strip(), p.stderr.strip(), p.returncode

    SHOW = """
        import sys
        print(any(type(f).__name__ == "Finder" and f.__module__.startswith("courier") for f in sys.meta_path),
              "sitecustomize" in sys.modules, any("instrumentation" in p for p in sys.path))
    """

    def test_attaches_and_leaves_the_path(self):
        self.assertEqual(self.python(self.SHOW), ("True False False", "", 0))

    def test_switched_off(self):
        self.assertEqual(self.python(self.SHOW, COURIER_INSTRUMENT="0")[0], "False False False")
        self.assertEqual(self.python(self.SHOW, COURIER_INSTRUMENT_CHANNEL="")[0], "False False False")

    def test_flags_without_site(self):
        for flag in ("-I", "-S", "-E"):
            self.assertEqual(self.python(self.SHOW, flag)[0].split()[0], "False", flag)
        self.assertEqual(self.python(self.SHOW, "-s")[0].split()[0], "True")

    def test_other_sitecustomize_runs(self):
        self.write("other/sitecustomize.py", "import os\nos.environ['OTHER'] = __name__ + __file__\n")
        other = os.path.join(self.directory.name, "other")
        out, err, _ = self.python("import os, sitecustomize; print(os.environ['OTHER'], sitecustomize.__file__)",
                                  path=[other])
        file = os.path.join(other, "sitecustomize.py")
        self.assertEqual((out, err), ("sitecustomize%s %s" % (file, file), ""))

    def test_error_of_other_sitecustomize_is_shown_as_before(self):
        self.write("other/sitecustomize.py", "raise ValueError('broken')\n")
        other = os.path.join(self.directory.name, "other")
        with_us = self.python("print(1)", path=[other])
        without = self.python("print(1)", path=[], PYTHONPATH=other)
        self.assertEqual(with_us, without)
        self.assertIn("broken", with_us[1])

    def test_no_other_sitecustomize_raises_as_before(self):
        code = "import sitecustomize"
        with_us, without = self.python(code), self.python(code, PYTHONPATH="")
        self.assertEqual(with_us[2], without[2])
        self.assertEqual(with_us[1].splitlines()[-1], without[1].splitlines()[-1])

    def test_nothing_is_imported(self):
        code = "import sys; print(sorted(m for m in sys.modules if not m.startswith('courier')))"
        self.assertEqual(self.python(code)[0], self.python(code, PYTHONPATH="")[0])

    def test_old_pythons(self):
        """OLD_PYTHONS: interpreters below 3.9, separated by colons."""
        for python in filter(None, os.environ.get("OLD_PYTHONS", "").split(":")):
            out, err, _ = self.python(self.SHOW, python=python)
            self.assertEqual((out.strip("()").replace(",", ""), err), ("False False False", ""), python)

    def test_import_hook(self):
        """A module with a hook keeps its spec and loader, and errors of the hook stay inside."""
        self.write("lib/torch/__init__.py", "")
        self.write("lib/torch/serialization.py", "def save(x):\n    return x\n")
        self.write("lib/torch/optim/__init__.py", "")
        self.write("lib/torch/optim/optimizer.py", "raise ImportError('no')\n")
        code = """
            import torch.serialization as s, inspect, importlib
            print(type(s.__loader__).__name__, "exec_module" in vars(s.__loader__), s.__spec__.loader is s.__loader__,
                  inspect.getsource(s)[:8], s.save(3), s.save.__wrapped__(4), s.save.__name__)
            importlib.reload(s)
            print(s.save(5), hasattr(s.save.__wrapped__, "__wrapped__"))
            try:
                import torch.optim.optimizer
            except ImportError as e:
                print(e)
        """
        out, err, _ = self.python(code, path=[os.path.join(self.directory.name, "lib")])
        self.assertEqual(out.splitlines(), ["SourceFileLoader False True def save 3 4 save", "5 False", "no"])
        self.assertEqual(err, "")

    def test_spawned_and_forked_children(self):
        script = self.write("s.py", self.SHOW.replace("import sys\n", "import sys, multiprocessing as mp\n") + """
        def child():
            print("child", any(type(f).__name__ == "Finder" for f in sys.meta_path))
        if __name__ == "__main__":
            for method in ("spawn", "fork"):
                p = mp.get_context(method).Process(target=child)
                p.start(); p.join(); print(p.exitcode)
        """)
        p = subprocess.run([sys.executable, script], capture_output=True, text=True,
                           env=dict(os.environ, PYTHONPATH=SITE, COURIER_INSTRUMENT_CHANNEL="/none"))
        self.assertEqual([line for line in p.stdout.splitlines() if "child" in line],
                         ["child True", "child True"], p.stderr)


class ChannelTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.server = listener(directory.name)
        self.addCleanup(self.server.close)
        self.path = os.path.join(directory.name, "channel")

    def test_lines_arrive(self):
        channel = Channel(self.path)
        channel.send({"type": "a"})
        channel.send({"type": "b"}, may_be_lost=True)
        connection, _ = self.server.accept()
        self.assertEqual([json.loads(x)["type"] for x in connection.recv(1000).splitlines()], ["a", "b"])

    def test_slow_reader(self):
        """Nothing waits; messages that may be lost are dropped first, then the newest ones."""
        channel = Channel(self.path)
        for i in range(20000):
            channel.send({"type": "progress", "x": "y" * 50}, may_be_lost=True)
        for i in range(5000):
            channel.send({"type": "unit", "epoch": i, "x": "y" * 50})
        connection, _ = self.server.accept()
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(connection.makefile()))
        reader.start()
        for _ in range(50):
            channel.flush(0.1)
        channel._socket.close()
        reader.join(5)
        epochs = [json.loads(x)["epoch"] for x in lines if '"unit"' in x]
        self.assertEqual(epochs, list(range(len(epochs))))
        self.assertLess(len(epochs), 5000)

    def test_closed_reader_does_not_end_a_process_with_default_sigpipe(self):
        code = """
            import signal, sys, time
            sys.path.insert(0, %r)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            from courier_instrument._channel import Channel
            c = Channel(%r)
            for i in range(20):
                c.send({"i": i}); time.sleep(0.02)
            print("alive")
        """ % (SITE, self.path)
        p = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
        connection, _ = self.server.accept()
        connection.close()
        self.assertEqual(p.communicate()[0].strip(), "alive")

    def test_descriptor_that_the_script_closed_and_reused(self):
        channel = Channel(self.path)
        channel.send({"type": "a"})
        descriptor = channel._socket.fileno()
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), descriptor)
            channel.send({"type": "b"})
            file.seek(0)
            self.assertEqual(file.read(), b"")
            os.fstat(descriptor)  # not closed by the channel
            os.close(descriptor)

    def test_no_reader(self):
        channel = Channel("/none/such")
        for i in range(10):
            channel.send({"i": i})
        self.assertEqual(len(channel._waiting), 0)

    def test_child_closes_its_copy_only(self):
        channel = Channel(self.path)
        channel.send({"type": "parent"})
        child = os.fork()
        if not child:
            channel.after_fork()
            channel.send({"type": "child"})
            channel.flush(1)
            os._exit(0)
        os.waitpid(child, 0)
        channel.send({"type": "parent again"})
        first, _ = self.server.accept()
        second, _ = self.server.accept()
        self.assertEqual(first.recv(1000).count(b"parent"), 2)
        self.assertEqual(second.recv(1000).count(b"child"), 1)


if __name__ == "__main__":
    unittest.main()
