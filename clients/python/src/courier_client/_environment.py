"""What the environment says about this process."""

from __future__ import annotations

import os
import re
import socket
from typing import Optional

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "LOCAL_RANK")


def is_first_rank() -> bool:
    """Whether this process reports for its job: it is rank 0, or has no rank."""
    for name in _RANKS:
        rank = integer(name)
        if rank is not None:
            return rank == 0
    tasks = integer("SLURM_NTASKS") or 1
    return tasks == 1 or (integer("SLURM_PROCID") or 0) == 0


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
    configured = os.environ.get("COURIER_NODE")
    name = configured or socket.gethostname().split(".")[0]
    return token(name) or "localhost"


def token(text: str) -> str:
    """The text as 1 to 64 characters of a-z, 0-9, _ and -."""
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-")[:64]
