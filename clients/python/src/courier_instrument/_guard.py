"""Keeps errors of the instrumentation away from the training."""

import functools
import importlib
import os
import threading

MAX_FAILURES = 3  # of one function; then it does nothing any more

_failures = {}
_reported = []  # at most one for each function


def run_hook(package, hook, module):
    """Attaches to a module of a framework."""
    name, function = hook.split(":")
    try:
        getattr(importlib.import_module(package + "." + name), function)(module)
    except Exception as error:
        failed(hook, error)


def failed(where, error):
    """Counts an error of a function, and remembers the first one for the report."""
    count = _failures[where] = _failures.get(where, 0) + 1
    if count == 1:
        _reported.append("%s: %s: %s" % (where, type(error).__name__, str(error)[:200]))
    if os.environ.get("COURIER_INSTRUMENT_DEBUG"):
        import traceback

        traceback.print_exc()


def errors():
    """Returns the errors since the previous call."""
    taken = _reported[:]
    del _reported[:]
    return taken


def quietly(function):
    """An observing function: it returns nothing, and none of its errors leaves it."""
    where = function.__module__ + "." + function.__qualname__

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if _failures.get(where, 0) >= MAX_FAILURES:
            return None
        try:
            return function(*args, **kwargs)
        except Exception as error:  # KeyboardInterrupt and SystemExit are the training's
            failed(where, error)
            return None

    return wrapper


def patch(owner, name, make):
    """Replaces a function of a class or module by ``make(function)``, once. What is not callable by
    itself, such as a descriptor, stays as it is."""
    original = vars(owner).get(name)
    if not callable(original) or getattr(original, "_courier_patched", False):
        return False
    replacement = functools.wraps(original)(make(original))
    replacement._courier_patched = True
    setattr(owner, name, replacement)
    return True


def around(before=None, after=None):
    """Makes a wrapper that calls ``before(args, kwargs)`` and ``after(args, kwargs, result, note)``
    quietly. The note is what ``before`` returned. ``after`` is not called after an exception."""
    before = quietly(before) if before else None
    after = quietly(after) if after else None

    def make(original):
        def wrapper(*args, **kwargs):
            note = before(args, kwargs) if before else None
            result = original(*args, **kwargs)
            if after:
                after(args, kwargs, result, note)
            return result

        return wrapper

    return make


class Depth(threading.local):
    """How deep a thread is in nested calls, for functions that call each other."""

    value = 0

    def __enter__(self):
        self.value += 1
        return self.value

    def __exit__(self, *_):
        self.value -= 1
