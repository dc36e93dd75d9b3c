"""Starts the instrumentation of Courier in a Python process of a job.

`courier run` puts a directory with this file and its package at the front of PYTHONPATH. Python
imports the first ``sitecustomize`` of its path at start-up, so this file hides the one of the
environment, if there is one. It therefore runs that one afterwards, and leaves the process as if that
one had been found first. Any Python may read this file, so it uses no syntax newer than Python 2.7.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_IS_ON = os.environ.get("COURIER_INSTRUMENT", "1").lower() not in ("0", "false", "off", "no")

if _IS_ON and sys.version_info >= (3, 9) and os.environ.get("COURIER_INSTRUMENT_CHANNEL"):
    try:
        import courier_instrument

        courier_instrument.start()
    except Exception:  # the job runs without instrumentation
        if os.environ.get("COURIER_INSTRUMENT_DEBUG"):
            raise

# From here on, the process looks as if this directory had not been on the path. If there is no other
# sitecustomize, this import raises the ImportError that Python expects in that case and ignores.
sys.path[:] = [p for p in sys.path if os.path.abspath(p) != _HERE]
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402,F401
