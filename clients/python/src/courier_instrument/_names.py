"""Which logged values are sent. The program knows the kinds of metrics; here, the names say only what
is of the training."""

import functools
import math

HELD_OUT = {"val", "valid", "validation", "eval", "test", "dev", "heldout", "holdout"}
TRAINING = {"train", "training", "tr", "trn", "learn"}
MAX_NAMES = 64


def words_of(name):
    for mark in "/-. @:'":
        name = name.replace(mark, "_")
    return [w for w in name.lower().split("_") if w]


@functools.lru_cache(maxsize=4096)
def classify(name):
    """Whether a name is that of held-out data, of a training, and of a loss."""
    words = words_of(name)
    held_out = not HELD_OUT.isdisjoint(words)
    return held_out, not held_out and not TRAINING.isdisjoint(words), any(w.endswith("loss") for w in words)


def number_of(value):
    """A finite number, or None. A tensor on a device is not read: that would wait for the device."""
    device = getattr(value, "device", None)
    kind = getattr(device, "type", None) or getattr(device, "platform", None) or device
    if kind not in (None, "cpu") or isinstance(value, (str, bytes)):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    return number if math.isfinite(number) else None


def pick(values):
    """The loss of the training as "loss", and the "values" that may be metrics of held-out data.

    values: (name, value) in the order of logging; the last value of a name counts."""
    loss, rank, others = None, -1, {}
    for name, value in values:
        held_out, of_training, is_loss = classify(name)
        if value is None:
            continue
        if is_loss and not held_out:
            own = 2 if name == "loss" else 1 if of_training else 0
            if own >= rank:
                loss, rank = value, own
        elif not of_training and len(others) < MAX_NAMES:
            others[name[:60]] = value
    return {"loss": loss, "values": others or None}
