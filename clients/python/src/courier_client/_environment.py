"""What the environment says about this process."""

from __future__ import annotations

import os
import re
import socket
from typing import Optional

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "LOCAL_RANK")


def is_first_rank() -> bool:
    """Whether this process reports for its job: it is rank 0, or has no rank."""
    names = _RANKS if (integer("SLURM_NTASKS") or 1) == 1 else (*_RANKS, "SLURM_PROCID")
    return next((rank for rank in map(integer, names) if rank is not None), 0) == 0


def integer(name: str) -> Optional[int]:
    """The value of a variable, or None if it is not a whole number."""
    try:
        return int(os.environ[name])
    except (KeyError, ValueError):
        return None


def number(name: str) -> Optional[float]:
    """The value of a variable, or None if it is not a number."""
    try:
        return float(os.environ[name])
    except (KeyError, ValueError):
        return None


def node_name() -> str:
    """The name of this node, as Courier's collector makes it from the host name."""
    return token(os.environ.get("COURIER_NODE") or socket.gethostname().split(".")[0]) or "localhost"


def token(text: str) -> str:
    """The text as 1 to 64 characters of a-z, 0-9, _ and -."""
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-")[:64]
