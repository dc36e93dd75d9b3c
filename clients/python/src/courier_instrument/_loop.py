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
import dis
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
LOCAL = re.compile(r"^(local|client|inner|user)_?ep", re.I)  # epochs of a client, within a round
ROUND = re.compile(r"^(i_?|cur_?|curr_?|current_?|n_?|num_?|max_?|total_?|nb_?)?"
                   r"(global_?|comm(unication)?s?_?|fl_?|fed_?|server_?|train(ing)?_?)?(rounds?|rnds?)"
                   r"(_?(i|idx|num|number|id|index|no|count))?$", re.I)
STEP = re.compile(r"(^|_)(time)?(steps?|it(e?rs?|erations?)?|updates?|episodes?|rollouts?)(_|$)", re.I)
BATCH_SIZE = re.compile(r"^(train|mini|per_device|per_gpu)?_?(train)?_?(batch_?size|batch_?sz|bsz?|mb_?size)$", re.I)
OTHERS = "torch.", "sklearn.", "jax.", "keras.", "courier_instrument"  # modules without the script's loop
OWN_DICTIONARY = {"locals", "vars", "eval", "exec", "dir", "breakpoint"}
HAS_SNAPSHOTS = sys.version_info < (3, 13)
OPTIMIZED = 3  # flags of the code of a function: it has fast variables in a new dictionary
LOOPS = ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef

_started = time.time()
_files = {}  # the loops in each file, by the first line of their function


class Loop:
    """A ``for`` or ``while`` loop of a function or module, or a comprehension."""

    def __init__(self, node):
        body = getattr(node, "body", [node])
        self.first, self.last = body[0].lineno, body[-1].end_lineno
        is_while = isinstance(node, ast.While) and not isinstance(node.test, ast.UnaryOp)  # "not x" counts nothing
        target, limits = getattr(node, "target", None), [node.test] if is_while else []
        while isinstance(target, (ast.Tuple, ast.List)):
            target = target.elts[0]
        for call in ast.walk(node.iter) if target else ():
            function = getattr(call, "func", None)
            if getattr(function, "id", getattr(function, "attr", "")) in ("range", "trange", "count"):
                limits = call.args
        self.is_counted = bool(limits)  # not over batches
        parts = [part for limit in limits for part in ast.walk(limit)]
        names = [name for part in parts for name in _names_of(part)]
        if target is None:  # the variable of a while loop is in its condition
            self.name = next(iter([*filter(EPOCH.match, names), *filter(ROUND.match, names)]), "")
        else:
            self.name = _name(target)
        is_product = any(isinstance(part, (ast.Mult, ast.Div, ast.FloorDiv)) for part in parts)
        is_total = target is not None and any(map(TOTAL.match, names)) and not is_product
        own = self.name.rpartition(".")[2]
        self.is_epochs = (is_total or EPOCH.match(own)) and not any(map(LOCAL.match, names))
        # Of federated learning, if it is not directly around epochs.
        self.is_rounds = ROUND.match(own) or any(map(ROUND.match, names)) and not is_product
        self.is_steps = not is_total and any(map(STEP.search, [own, *names]))
        self.batch_size = next((_name(p) for p in parts if any(map(BATCH_SIZE.match, _names_of(p)))), "")
        self.counts_from = _first_number(*limits[:2]) if target and limits else None


def _first_number(begin, end=None):
    """The number of the first epoch that a range counts: 0, or 1 as in range(1, n) and range(k, n + 1)."""
    adds_one = isinstance(end, ast.BinOp) and getattr(end.right, "value", None) == 1
    return 1 if adds_one or end is not None and getattr(begin, "value", None) == 1 else 0


def _name(node):
    """A variable, or an attribute of one, as it is written; empty for anything else."""
    is_name = all(isinstance(n, (ast.Name, ast.Attribute, ast.expr_context)) for n in ast.walk(node))
    return ast.unparse(node) if is_name else ""


def _names_of(node):
    """The name of a variable or attribute, or a key."""
    return [n for n in map(vars(node).get, ("id", "attr", "value")) if isinstance(n, str)]


def _read_file(name, variables):
    """The loops in a file; none if it may have changed since it was loaded."""
    if os.path.exists(name) and (os.path.getmtime(name) > _started or os.path.getsize(name) > MAX_SOURCE):
        return {}
    found = {}

    def visit(node, function):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, FUNCTIONS):
                visit(child, min(n.lineno for n in [child, *child.decorator_list]))
            else:
                if isinstance(child, LOOPS):
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


def _is_readable(frame):
    """Whether the variables of a frame can be read without effects. A function may have them in a dictionary
    itself. The name in ``model.eval()`` is that of an attribute."""
    code = frame.f_code
    if not HAS_SNAPSHOTS or code.co_name == "<module>":
        return True
    calls = [i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    return code.co_flags & OPTIMIZED == OPTIMIZED and OWN_DICTIONARY.isdisjoint(calls)


def _value(name, variables, module):
    """The value of a variable or attribute; the latter without calling a property."""
    first, _, attributes = name.partition(".")
    value = variables.get(first, module.get(first))
    for attribute in attributes and attributes.split("."):
        value = getattr(value, "__dict__", {}).get(attribute)
    return value


def _values_of(frame, names):
    """The values of variables of a frame that is readable; None if a debugger may change them."""
    if HAS_SNAPSHOTS and sys.gettrace() is not None:
        return None
    variables, module = frame.f_locals, frame.f_globals
    values = [_value(name, variables, module) for name in names]
    if HAS_SNAPSHOTS and variables is not module:
        variables.clear()
    return values


def _frames(frame):
    """A frame and its callers, without those of frameworks."""
    for _ in range(MAX_FRAMES):
        if frame is None:
            break
        if not frame.f_globals.get("__name__", "").startswith(OTHERS):
            yield frame
        frame = frame.f_back


def batch_size():
    """The value of ``batch_size`` in the ranges of the loops that the caller is within, or else of the variables
    with such a name, unless the innermost loop is over epochs: each may be a step with all of the data."""
    inner, named = None, set()
    for frame in _frames(sys._getframe(2)):
        around = loops_around(frame)
        inner = inner or next(reversed(around), None)
        header = [loop.batch_size for loop in around if loop.batch_size][-1:]
        variables = frame.f_code.co_varnames + frame.f_code.co_names if around else ()
        names = header or [*filter(BATCH_SIZE.match, variables)]
        values = _values_of(frame, names) if names and _is_readable(frame) else None
        sizes = {v for v in values or () if type(v) is int}
        if header:
            return sizes.pop() if sizes else None
        named |= sizes
    return named.pop() if len(named) == 1 and not inner.is_epochs else None


class Position:
    """Where the script is in its loop over epochs, as seen by a caller below that loop."""

    MAX_SEARCHES = 50  # without a result

    def __init__(self):
        self.loop = self._code = None
        self._names = {}  # of the variables of the loops around an instruction of the code, inner ones first
        self.searches = 0
        self.counts_steps = False  # the script has a loop over steps, which forms no epochs
        self.is_in_loop = False  # of any kind, when it was searched

    def read(self, is_step=False):
        """The values of the loop over epochs and of the loops around it; None without such a loop.
        A different result means another epoch, and the first item is the value of the loop."""
        for _ in range(2):
            if self._code is None and not self._search(is_step):
                break
            frame = sys._getframe(1)
            while frame is not None and frame.f_code is not self._code:
                frame = frame.f_back
            values = frame and self._values(frame)
            if values is not None:
                return values
            self._code = None  # the loop has ended; another one may have begun
        return None

    def _search(self, is_step):
        """Finds the outermost loop over epochs, or over rounds of clients. One within a loop over steps
        counts passes over the data of a step, as in reinforcement learning. A step whose innermost loop is
        over steps takes its batch from an iterator that begins again and again."""
        if self.searches >= self.MAX_SEARCHES:
            return False
        self.searches += 1
        self._code = self.loop = None
        counts_steps, inner = False, None
        for frame in _frames(sys._getframe(3)):
            for loop in reversed(loops_around(frame)):
                is_rounds = loop.is_rounds and not (inner and inner.is_epochs)
                values = (loop.is_epochs or is_rounds) and _is_readable(frame) and _values_of(frame, [loop.name])
                if values and type(values[0]) is int:
                    self._code, self.loop = frame.f_code, loop
                elif loop.is_steps:
                    counts_steps |= self._code is not None or inner is None and loop.is_counted
                    self._code = self.loop = None
                inner = loop
        is_found, self.is_in_loop = self._code is not None, inner is not None
        if is_step:
            self.counts_steps = counts_steps and not is_found
        if is_found:
            self._names, self.searches = {}, 0
        return is_found

    def _values(self, frame):
        at = frame.f_lasti
        if at not in self._names:
            loops = loops_around(frame)
            end = loops.index(self.loop) + 1 if self.loop in loops else 0
            self._names[at] = [loop.name for loop in reversed(loops[:end])]
        values = _values_of(frame, self._names[at])
        return (*[v if type(v) is int else id(v) for v in values], id(frame)) if values else None
