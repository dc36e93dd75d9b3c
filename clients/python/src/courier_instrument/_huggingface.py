"""The Trainer of Hugging Face: the events of its callback handler."""

from ._guard import around, patch
from ._session import Fit, clock, session


def handler(module):
    """transformers.trainer_callback"""

    def after_event(args, kwargs, result, note):
        own, event = args[0], args[1]
        arguments, state = args[2], args[3]
        react = _EVENTS.get(event)
        if react is not None and getattr(state, "is_world_process_zero", True):
            react(own, arguments, state, kwargs)

    patch(module.CallbackHandler, "call_event", around(after=after_event))


def _train_begin(own, arguments, state, kwargs):
    own._courier_fit = Fit("huggingface", state.num_train_epochs or None,
                           batch_size=arguments.train_batch_size)
    own._courier_pending = None


def _epoch_begin(own, arguments, state, kwargs):
    _report(own)
    own._courier_fit.begin_unit()


def _epoch_end(own, arguments, state, kwargs):
    # The evaluation of the epoch follows this event.
    own._courier_pending = (int(state.epoch + 0.999), session().measured_since(own._courier_fit._began))
    if abs(state.epoch - round(state.epoch)) > 0.001 and state.global_step >= state.max_steps > 0:
        own._courier_pending = None  # the limit of steps was reached within the epoch


def _log(own, arguments, state, kwargs):
    if getattr(own, "_courier_fit", None) is not None:
        own._courier_fit.log(kwargs.get("logs") or {})


def _evaluate(own, arguments, state, kwargs):
    if getattr(own, "_courier_fit", None) is not None:
        own._courier_fit.log(kwargs.get("metrics") or {})


def _train_end(own, arguments, state, kwargs):
    _report(own)
    fit, own._courier_fit = own._courier_fit, None
    fit.end()


def _report(own):
    pending, own._courier_pending = own._courier_pending, None
    if pending is not None:
        number, measured = pending
        own._courier_fit.unit(number, **measured)


_EVENTS = {
    "on_train_begin": _train_begin, "on_epoch_begin": _epoch_begin, "on_epoch_end": _epoch_end,
    "on_log": _log, "on_evaluate": _evaluate, "on_train_end": _train_end,
}
