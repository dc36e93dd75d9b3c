"""Which of a framework's metrics Courier gets."""

from __future__ import annotations

import math
from typing import Any, Dict, Mapping, Optional

_HELD_OUT = ("val", "valid", "validation", "eval", "test", "dev")
_ACCURACIES = ("accuracy", "acc", "auc", "f1", "r2", "map")
_ERRORS = ("error", "err", "wer", "cer")
_LOSSES = ("loss", "logloss", "mlogloss", "rmse", "mse", "mae", "l1", "l2")


def pick(metrics: Mapping[str, Any]) -> Dict[str, float]:
    """The loss of the training, and the accuracy on held-out data if there is one."""
    found: Dict[str, float] = {}
    ranks: Dict[str, int] = {}
    for name, value in metrics.items():
        number = _number(value)
        words = [w for w in _words(name) if w]
        if number is None or not words:
            continue
        is_held_out = any(w in _HELD_OUT for w in words)
        kind = _kind(words)
        if kind == "error":
            kind, number = "accuracy", 1 - number
        if kind is None or kind == "accuracy" and not 0 <= number <= 1:
            continue
        rank = 1 if is_held_out == (kind == "accuracy") else 0
        if rank >= ranks.get(kind, -1):
            found[kind], ranks[kind] = number, rank
    return found


def _words(name: str) -> "list[str]":
    for mark in "/-. @:'":
        name = name.replace(mark, "_")
    return name.lower().split("_")


def _kind(words: "list[str]") -> Optional[str]:
    for word in reversed(words):
        if word.endswith("accuracy") or word in _ACCURACIES:
            return "accuracy"
        if word in _ERRORS or word.endswith("error"):
            return "error"
        if word in _LOSSES or word.endswith("loss"):
            return "loss"
    return None


def _number(value: Any) -> Optional[float]:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
