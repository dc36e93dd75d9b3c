"""Who this process is at NATS, by the variables of the commands of courier."""

from __future__ import annotations

import json
import logging
import os
import ssl
from typing import Any, Dict

_PERSONAL = ("submit", "cancel", "started", "epoch", "finished", "failed", "cancelled", "moved", "alive")


def _settings() -> Dict[str, Any]:
    """The context of the nats CLI that COURIER_NATS_CONTEXT names; without one, the other variables."""
    context = os.environ.get("COURIER_NATS_CONTEXT")
    if not context:
        names = ("ca", "cert", "key", "nkey", "creds")
        return {name: os.environ.get("COURIER_NATS_" + name.upper()) for name in names}
    if not os.path.isabs(context):
        home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        context = os.path.join(home, "nats", "context", context + ".json")
    with open(context, encoding="utf-8") as file:
        settings: Dict[str, Any] = json.load(file)
    return settings


def person() -> str:
    """The user whose rights NATS limits to their own jobs; empty: none."""
    seed = os.environ.get("COURIER_NATS_NKEY", "")
    has_name = seed or os.environ.get("COURIER_NATS_CREDS") or os.environ.get("COURIER_NATS_CONTEXT")
    user = os.environ.get("COURIER_NATS_USER") or os.path.basename(seed).split(".")[0]
    return user if has_name and user != "operator" else ""


def subject(plain: str) -> str:
    """The subject of a request or an event, which has the name of a person who sends it for themselves."""
    return f"person.{person()}.{plain}" if person() and plain.split(".")[-1] in _PERSONAL else plain


async def _log(error: Exception) -> None:
    # The default prints a stack trace for each attempt; the caller reports an error that matters.
    logging.getLogger("courier_client").debug("NATS: %s", error)


def connection(url: str) -> Dict[str, Any]:
    """The arguments of nats.connect."""
    settings = _settings()
    named = {"nkeys_seed": "nkey", "user_credentials": "creds", "user": "user", "password": "password",
             "token": "token"}
    options = {option: settings[name] for option, name in named.items() if settings.get(name)}
    if settings.get("ca") or settings.get("cert"):
        options["tls"] = ssl.create_default_context(cafile=settings.get("ca") or None)
    if settings.get("cert"):
        options["tls"].load_cert_chain(settings["cert"], settings.get("key"))
    if person():
        options["inbox_prefix"] = "_INBOX_" + person()
    servers = [server.strip() for server in (settings.get("url") or url).split(",")]
    return dict(options, servers=servers, name="courier-client", error_cb=_log)
