"""Which of a framework's metrics Courier gets."""

from __future__ import annotations

import math
import re
from typing import Any, Dict, List, Mapping, Optional

_HELD_OUT = {"val", "valid", "validation", "eval", "test", "dev"}
_KINDS = {
    "accuracy": re.compile(r".*accuracy|acc|auc|f1|r2|map"),
    "error": re.compile(r".*error|err|wer|cer"),
    "loss": re.compile(r".*loss|rmse|mse|mae|l1|l2"),
}


def pick(metrics: Mapping[str, Any]) -> Dict[str, float]:
    """The loss of the training, and the accuracy on held-out data if there is one."""
    found: Dict[str, float] = {}
    ranks: Dict[str, bool] = {}
    for name, value in metrics.items():
        words = [w for w in re.split(r"[_/\-. @:']", name.lower()) if w]
        kind = _kind(words)
        try:
            number = float(value)
        except (TypeError, ValueError):
            continue
        if kind == "error":
            kind, number = "accuracy", 1 - number
        if kind is None or not math.isfinite(number) or kind == "accuracy" and not 0 <= number <= 1:
            continue
        rank = _HELD_OUT.isdisjoint(words) != (kind == "accuracy")
        if rank >= ranks.get(kind, False):
            found[kind], ranks[kind] = number, rank
    return found


def _kind(words: List[str]) -> Optional[str]:
    """By the last word that has one."""
    return next((kind for word in reversed(words) for kind, names in _KINDS.items()
                 if names.fullmatch(word)), None)
