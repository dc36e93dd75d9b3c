"""Callback for CatBoost: ``model.fit(..., callbacks=[DeadlineCallback(60, total=500)])``."""

from __future__ import annotations

from typing import Any

from ._callbacks import RoundCallback


class DeadlineCallback(RoundCallback):
    __doc__ = RoundCallback.__doc__

    def after_iteration(self, info: Any) -> bool:
        return self._add((name != "learn", metric, values[-1])
                         for name, by_metric in (info.metrics or {}).items()
                         for metric, values in by_metric.items())
