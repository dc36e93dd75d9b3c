"""Observes functions of frameworks, and keeps errors of the instrumentation away from the training."""

import functools
import importlib
import os

MAX_FAILURES = 3  # of one function; then it does nothing any more

_failures = {}


def run_hook(hook, module):
    """Attaches to a module of a framework."""
    name, function = hook.split(":")
    try:
        getattr(importlib.import_module("." + name, __package__), function)(module)
    except Exception as error:
        failed(hook, error)


def failed(where, error):
    """Counts an error of a function. COURIER_INSTRUMENT_DEBUG shows it."""
    _failures[where] = _failures.get(where, 0) + 1
    if os.environ.get("COURIER_INSTRUMENT_DEBUG"):
        import traceback

        traceback.print_exception(type(error), error, error.__traceback__)


def quietly(function):
    """An observing function: it returns nothing, and none of its errors leaves it."""
    where = function.__module__ + "." + function.__qualname__

    @functools.wraps(function)
    def wrapper(*args):
        if _failures.get(where, 0) >= MAX_FAILURES:
            return None
        try:
            return function(*args)
        except Exception as error:  # KeyboardInterrupt and SystemExit are the training's
            failed(where, error)

    return wrapper


class Call:
    """A call of an observed function. ``note`` is for the observers."""

    def __init__(self, args, kwargs):
        self.args, self.kwargs, self.result, self.note = args, kwargs, None, None

    def get(self, index, name, default=None):
        """An argument by its position or its name."""
        return self.args[index] if len(self.args) > index else self.kwargs.get(name, default)


def observe(owner, name, before=None, after=None, always=None):
    """Observes the calls of a function of a class or module, once: ``before(call)``, which may change the
    arguments, ``after(call)`` without an exception, ``always(call)`` also after one. What is not callable
    by itself, such as a descriptor, stays as it is. Without the function, nothing happens."""
    original = vars(owner).get(name)
    if not callable(original) or getattr(original, "_courier_observed", False):
        return
    before, after, always = (f and quietly(f) for f in (before, after, always))

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        call = Call(args, kwargs)
        if before:
            before(call)
        try:
            call.result = original(*call.args, **call.kwargs)
        finally:
            if always:
                always(call)
        if after:
            after(call)
        return call.result

    wrapper._courier_observed = True
    setattr(owner, name, wrapper)
