"""The script's own loop over epochs, where it has one: found by the structure of its source.

Passes over loaders do not show everything: a training may be resumed at its sixth epoch, have no
loader, or begin several passes in an epoch. Its loop does. The line at which a caller is shows which
loops it is within. One of them is over epochs if its variable is named so, or if it is over a range of
``epochs``. The variable is read where that has no effect on the script:

- Variables of a module are its dictionary.
- Variables of a function by ``f_locals``. Before Python 3.13 that copies all variables into a dictionary
  that stays. The dictionary is emptied at once, so that no tensor stays in memory. Functions that may
  have the same dictionary themselves (they use ``locals`` and the like) are not read.
"""

import ast
import linecache
import os
import re
import sys
import time

MAX_FRAMES = 40
MAX_SOURCE = 500_000  # bytes of a file that is read
EPOCH = re.compile(r"^(i_?|cur_?|curr_?|current_?|n_?|this_?|global_?)?(epoch|ep)"
                   r"(_?(i|idx|num|number|id|index|no|count))?$", re.I)
TOTAL = re.compile(r"^(n|num|max|total|nb|n_?train|num_?train|train|training)?_?epochs?"
                   r"(_?(n|num|total|max|count))?$", re.I)
STEP = re.compile(r"step|iter|batch", re.I)
OTHERS = "torch.", "sklearn.", "jax.", "keras.", "courier_instrument"  # modules without the script's loop
OWN_DICTIONARY = {"locals", "vars", "eval", "exec", "dir", "breakpoint"}
HAS_SNAPSHOTS = sys.version_info < (3, 13)
OPTIMIZED = 3  # flags of the code of a function: it has fast variables in a new dictionary
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef

_started = time.time()
_files = {}  # the loops in each file, by the first line of their function


class Loop:
    """A ``for`` loop of a function or module."""

    def __init__(self, node):
        self.first, self.last = node.body[0].lineno, node.body[-1].end_lineno
        target = node.target
        while isinstance(target, (ast.Tuple, ast.List)):
            target = target.elts[0]
        self.name = getattr(target, "id", "")
        self.is_epochs = EPOCH.match(self.name) is not None
        self.counts_from = None  # 0 or 1; None: unknown
        for call in ast.walk(node.iter):
            function = getattr(call, "func", None)
            if getattr(function, "id", getattr(function, "attr", "")) in ("range", "trange"):
                self._read_range(call.args)

    def _read_range(self, arguments):
        parts = [part for argument in arguments for part in ast.walk(argument)]
        names = {name for part in parts for name in map(part.__dict__.get, ("id", "attr", "value"))
                 if isinstance(name, str)}
        is_product = any(isinstance(part, (ast.Mult, ast.Div, ast.FloorDiv)) for part in parts)
        if any(TOTAL.match(name) for name in names) and not is_product and not STEP.search(self.name):
            self.is_epochs = True
        if any("episode" in name.lower() for name in names):
            self.is_epochs = False
        begin, end = (arguments + [None, None])[:2]
        adds_one = isinstance(end, ast.BinOp) and getattr(end.right, "value", None) == 1
        starts_at_one = end is not None and getattr(begin, "value", None) == 1
        self.counts_from = 1 if adds_one or starts_at_one else 0


def _read_file(name, variables):
    """The loops in a file; none if it may have changed since it was loaded."""
    if os.path.exists(name) and (os.path.getmtime(name) > _started or os.path.getsize(name) > MAX_SOURCE):
        return {}
    found = {}

    def visit(node, function):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, FUNCTIONS):
                visit(child, min(n.lineno for n in [child, *child.decorator_list]))
            elif not isinstance(child, ast.expr):
                if isinstance(child, ast.For):
                    found.setdefault(function, []).append(Loop(child))
                visit(child, function)

    visit(ast.parse("".join(linecache.getlines(name, variables))), 0)
    return found


def loops_around(frame):
    """The loops that a frame is within, outer ones first."""
    code = frame.f_code
    name, module = code.co_filename, frame.f_globals.get("__file__") or ""
    if module.endswith(name):
        name = module  # that of a script is relative, and the working directory may have changed
    if name not in _files:
        _files[name] = {}
        try:
            _files[name] = _read_file(name, frame.f_globals)
        except Exception:  # the source is not there, or another one
            pass
    loops = _files[name].get(0 if code.co_name == "<module>" else code.co_firstlineno, ())
    return [loop for loop in loops if loop.first <= (frame.f_lineno or 0) <= loop.last]


def _values_of(frame, names):
    """The values of variables of a frame; None if reading has effects."""
    code = frame.f_code
    if code.co_name == "<module>":
        return [frame.f_globals.get(name) for name in names]
    if HAS_SNAPSHOTS and (code.co_flags & OPTIMIZED != OPTIMIZED or sys.gettrace() is not None
                          or not OWN_DICTIONARY.isdisjoint(code.co_names)):
        return None
    variables = frame.f_locals
    values = [variables.get(name) for name in names]
    if HAS_SNAPSHOTS:
        variables.clear()
    return values


class Position:
    """Where the script is in its loop over epochs, as seen by a caller below that loop."""

    MAX_SEARCHES = 50  # without a result

    def __init__(self):
        self.loop = self._code = None
        self._names = {}  # of the variables of the loops around an instruction of the code, inner ones first
        self.searches = 0

    def read(self):
        """The values of the loop over epochs and of the loops around it; None without such a loop.
        A different result means another epoch, and the first item is the value of the loop."""
        if self._code is None and not self._search():
            return None
        frame = sys._getframe(2)
        for _ in range(MAX_FRAMES):
            if frame is None or frame.f_code is self._code:
                break
            frame = frame.f_back
        else:
            frame = None
        values = frame and self._values(frame)
        if values is None:
            self._code = None  # the loop has ended; there may be another one
        return values

    def _search(self):
        if self.searches >= self.MAX_SEARCHES:
            return False
        self.searches += 1
        frame = sys._getframe(3)
        for _ in range(MAX_FRAMES):
            if frame is None:
                return False
            if not frame.f_globals.get("__name__", "").startswith(OTHERS):
                for loop in reversed(loops_around(frame)):
                    values = loop.is_epochs and _values_of(frame, [loop.name])
                    if values and type(values[0]) is int:
                        self._code, self.loop, self._names, self.searches = frame.f_code, loop, {}, 0
                        return True
            frame = frame.f_back
        return False

    def _values(self, frame):
        at = frame.f_lasti
        if at not in self._names:
            loops = loops_around(frame)
            end = loops.index(self.loop) + 1 if self.loop in loops else 0
            self._names[at] = [loop.name for loop in reversed(loops[:end])]
        values = _values_of(frame, self._names[at])
        return (*[v if type(v) is int else id(v) for v in values], id(frame)) if values else None
