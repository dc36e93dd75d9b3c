"""The script's own loop over epochs, where it has one: found by the structure of its code.

Passes over loaders do not show everything: a training may be resumed at its sixth epoch, have no
loader, or begin several passes in an epoch. Its loop does. From the bytecode follows which loops the
caller is within. One of them is over epochs if its variable is named so, or if it is over a range of
``epochs``. The variable is read where that has no effect on the script:

- Variables of a module are its dictionary.
- Variables of a function: from Python 3.13 by ``f_locals``, and on 3.12 by the C function
  ``PyFrame_GetVar``. On earlier versions ``f_locals`` copies all variables into a dictionary that
  stays. The dictionary is emptied at once, so that no tensor stays in memory. Functions that may have
  the same dictionary themselves (they use ``locals`` and the like) are not read.
"""

import dis
import re
import sys

MAX_FRAMES = 40
MAX_CODE = 20000  # bytes of a function that is analysed
EPOCH = re.compile(r"^(i_?|cur_?|curr_?|current_?|n_?|this_?|global_?)?(epoch|ep)"
                   r"(_?(i|idx|num|number|id|index|no|count))?$", re.I)
TOTAL = re.compile(r"^(n|num|max|total|nb|n_?train|num_?train|train|training)?_?epochs?"
                   r"(_?(n|num|total|max|count))?$", re.I)
STEP = re.compile(r"step|iter|batch", re.I)
OWN_DICTIONARY = {"locals", "vars", "eval", "exec", "dir", "breakpoint"}
CALLS = ("CALL", "CALL_FUNCTION", "CALL_FUNCTION_KW", "CALL_KW", "CALL_FUNCTION_EX", "PRECALL")
OPTIMIZED = 3  # flags of the code of a function: it has fast variables in a new dictionary


class Loop:
    """A ``for`` loop in the code of a function or module."""

    __slots__ = ("begin", "end", "name", "is_epochs", "counts_from")

    def __init__(self, begin, end, name):
        self.begin, self.end, self.name = begin, end, name
        self.is_epochs = EPOCH.match(name) is not None
        self.counts_from = None  # 0 or 1; None: unknown


_loops = {}  # by code object


def loops_of(code):
    """The loops in a code object, outer ones first."""
    found = _loops.get(code)
    if found is None:
        try:
            found = _find_loops(code) if len(code.co_code) <= MAX_CODE else []
        except Exception:  # bytecode of a future version
            found = []
        _loops[code] = found
    return found


def _find_loops(code):
    instructions = [i for i in dis.get_instructions(code) if i.opname not in ("EXTENDED_ARG", "CACHE")]
    found = []
    for n, instruction in enumerate(instructions):
        if instruction.opname != "FOR_ITER":
            continue
        name = _first_stored(instructions[n + 1:n + 8])
        if name is not None:
            loop = Loop(instruction.offset, instruction.argval, name)
            _read_range(loop, _expression(instructions[:n]))
            found.append(loop)
    return sorted(found, key=lambda loop: loop.begin)


def _expression(before):
    """The instructions of the expression that a loop is over: those since the previous statement."""
    n = len(before)
    while n > 0 and not before[n - 1].opname.startswith(("STORE_", "FOR_ITER", "POP_TOP", "POP_JUMP",
                                                         "JUMP", "RETURN", "RESUME")):
        n -= 1
    return before[n:]


def _first_stored(instructions):
    for instruction in instructions:
        if instruction.opname.startswith("STORE_"):
            value = instruction.argval
            return value[0] if isinstance(value, tuple) else value if isinstance(value, str) else None
        if instruction.opname not in ("UNPACK_SEQUENCE", "NOP", "NOT_TAKEN"):
            return None
    return None


def _read_range(loop, before):
    """Reads the arguments of the range that a loop is over, if it is over one."""
    begins = [n for n, i in enumerate(before) if i.argval in ("range", "trange")
              and i.opname.startswith("LOAD_")]
    if not begins:
        return
    arguments = []
    for instruction in before[begins[-1] + 1:]:
        if instruction.opname in CALLS:
            break
        if instruction.opname not in ("PUSH_NULL", "NOP"):
            arguments.append(instruction)
    names = [i.argval for i in arguments if isinstance(i.argval, str) and i.opname.startswith("LOAD_")]
    is_product = any("MULTIPLY" in i.opname or "*" in i.argrepr or "/" in i.argrepr
                     for i in arguments if i.opname.startswith("BINARY"))
    if any(TOTAL.match(n) for n in names) and not is_product and not STEP.search(loop.name):
        loop.is_epochs = True
    if any("episode" in n.lower() for n in names):
        loop.is_epochs = False
    if not arguments:
        return
    adds_one = (len(arguments) > 1 and arguments[-1].opname.startswith("BINARY")
                and arguments[-2].argval == 1)
    starts_at_one = len(arguments) > 1 and arguments[0].argval == 1 and arguments[0].opname in (
        "LOAD_CONST", "LOAD_SMALL_INT")
    loop.counts_from = 1 if adds_one or starts_at_one else 0


def _variables(frame):
    """A function that reads a variable of a frame by name; None if reading has effects."""
    code = frame.f_code
    if code.co_name == "<module>":
        return frame.f_globals.get
    if sys.version_info >= (3, 13):
        return frame.f_locals.get
    if sys.version_info >= (3, 12):
        return lambda name: _get_variable(frame, name)
    if (code.co_flags & OPTIMIZED != OPTIMIZED or sys.gettrace() is not None
            or not OWN_DICTIONARY.isdisjoint(code.co_names)):
        return None

    def read(name):
        variables = frame.f_locals
        value = variables.get(name)
        variables.clear()
        return value

    return read


def _get_variable(frame, name):
    import ctypes

    function = ctypes.pythonapi.PyFrame_GetVarString
    function.restype, function.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_char_p]
    try:
        return function(frame, name.encode())
    except NameError:
        return None


class Position:
    """Where the script is in its loop over epochs, as seen by a caller below that loop."""

    MAX_SEARCHES = 50  # without a result

    def __init__(self):
        self.loop = None
        self._code = None
        self.searches = 0

    def read(self):
        """The values of the loop over epochs and of the loops around it; None without such a loop.
        A different result means another epoch, and the first item is the value of the loop."""
        if self._code is None and not self._search():
            return None
        frame = sys._getframe(2)
        for _ in range(MAX_FRAMES):
            if frame is None:
                break
            if frame.f_code is self._code:
                return self._values(frame)
            frame = frame.f_back
        self._code = None  # the loop has ended; there may be another one
        return None

    def _search(self):
        if self.searches >= self.MAX_SEARCHES:
            return False
        self.searches += 1
        frame = sys._getframe(3)
        for _ in range(MAX_FRAMES):
            if frame is None:
                return False
            if not frame.f_globals.get("__name__", "").startswith(
                    ("torch.", "sklearn.", "jax.", "keras.", "courier_instrument")):
                for loop in reversed(_around(frame)):
                    if not loop.is_epochs:
                        continue
                    read = _variables(frame)
                    if read is not None and type(read(loop.name)) is int:
                        self._code, self.loop, self.searches = frame.f_code, loop, 0
                        return True
            frame = frame.f_back
        return False

    def _values(self, frame):
        read = _variables(frame)
        if read is None:
            return None
        inside = [loop for loop in _around(frame) if loop.begin <= self.loop.begin]
        if self.loop not in inside:
            self._code = None
            return None
        values = [id(frame)]
        for loop in inside:
            value = read(loop.name)
            values.append(value if type(value) is int else id(value))
        return tuple(reversed(values))


def _around(frame):
    """The loops that a frame is within, outer ones first."""
    at = frame.f_lasti
    return [loop for loop in loops_of(frame.f_code) if loop.begin < at < loop.end]
