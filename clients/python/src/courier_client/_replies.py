"""The replies of the advisor, as in docs/reference/messages.md. A field that is unknown is absent."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, TypedDict


class Alternative(TypedDict, total=False):
    """A choice of batch size, CPUs, workers, data loaders and epochs, with what it is predicted to do."""

    batch_size: int
    cpus: int
    workers: int
    loaders: int
    epochs: int
    expected_epochs: int
    predicted_seconds: float
    upper_bound_seconds: float
    predicted_accuracy: float
    accuracy_lower: float
    accuracy_upper: float
    probability: float
    slo_probability: float
    accuracy_probability: float
    cpu_seconds: float
    score: float
    extrapolated: bool
    reason: str
    evidence: Dict[str, Any]


class JobAdvice(TypedDict, total=False):
    """The reply to predict and submit. decision: meets_slo, best_effort, exploring or weighted."""

    event_id: str
    at: str
    job_id: str
    run: int
    cause_sequence: int
    decision: str
    action: str
    message: str
    model: str
    dataset: str
    nodes: List[str]
    slo_seconds: float
    elapsed_seconds: float
    confidence: float
    epochs_done: int
    may_stop_early: bool
    epoch_ratio: float
    load: Dict[str, Any]
    chosen: Optional[Alternative]
    alternatives: List[Alternative]
    effects: List[Dict[str, Any]]
    menu: List[Dict[str, Any]]
    admission: Dict[str, Any]
    move: Dict[str, Any]
    regressors: Dict[str, str]


class JobStatus(TypedDict, total=False):
    """The state of a job. Instants are texts, such as 2026-11-28T08:00:00Z."""

    job_id: str
    state: str
    model: str
    dataset: str
    user: str
    labels: Dict[str, str]
    nodes: List[str]
    queue_position: int
    reserved_seconds: float
    batch_size: int
    cpus: int
    workers: int
    loaders: int
    epochs: int
    epochs_done: int
    running_epoch: int
    epoch_ratio: float
    epoch_seconds: float
    run: int
    slo_seconds: float
    target_accuracy: float
    submitted_at: str
    started_at: str
    last_seen_at: str
    ended_at: str
    trained_at: str
    deadline_at: str
    predicted_end_at: str
    probability: float
    at_risk: bool
    bottleneck: str
    predicted_seconds: float
    measured_seconds: float
    accuracy: float
    phases: Dict[str, Any]
    decision: str
    proposal: str
    saved_probability: float
    accuracy_loss: float
    extra_cpu_seconds: float
    met_slo: bool
    incomplete: bool
    reason: str
    not_learned: str
