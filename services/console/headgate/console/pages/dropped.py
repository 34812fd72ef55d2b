"""Pages about manifests that somebody drops in: what they would change, and what becomes of each annotation."""

import hmac
from typing import Any, Final

from aiohttp import BodyPartReader, web
from aiohttp.http_exceptions import HttpProcessingError

from headgate.common.errors import StoreError
from headgate.console.access.guard import FORM_TOKEN
from headgate.console.commands import MAX_MANIFESTS
from headgate.console.live.view import LiveView
from headgate.operations.errors import InvalidRequest, OperationError

_SHOWN: Final = 300
"""Changes, findings and lines that a page lists."""
_KEPT_TEXT: Final = 200_000
"""Characters that the form shows again; nothing of a longer text, as half of it would be another question."""
_MAX_FIELDS: Final = 16
"""The forms have five."""
Shown = dict[str, Any]


async def show_plan(view: LiveView, request: web.Request) -> Shown:
    """Return what manifests would change if they were applied."""
    form = await _read_form(request)
    prune = form.get("prune") == "on"
    shown: Shown = {"asked": form, "prune": prune}
    if not form:
        return shown
    try:
        found = await view.commands.plan(_manifests(form), form.get("cluster", "").strip(), prune=prune)
    except (OperationError, StoreError) as error:
        return {**shown, "error": str(error)}
    changes = found["changes"]
    return {
        **shown,
        "found": found,
        "changes": changes[:_SHOWN],
        "hidden": max(0, len(changes) - _SHOWN),
        "findings": found["findings"][:_SHOWN],
        "notes": found["notes"][:_SHOWN],
        "untold": sum(max(0, len(found[name]) - _SHOWN) for name in ("findings", "notes")),
    }


async def show_audit(view: LiveView, request: web.Request) -> Shown:
    """Return what becomes of each annotation and field of manifests."""
    form = await _read_form(request)
    if not form:
        return {"asked": form}
    try:
        found = await view.commands.audit(_manifests(form))
    except (OperationError, StoreError) as error:
        return {"asked": form, "error": str(error)}
    lines = sorted(found["summary"], key=lambda one: (not one["lets_in"], _WORST.index(one["verdict"]), one["name"]))
    return {"asked": form, "found": found, "lines": lines[:_SHOWN], "hidden": max(0, len(lines) - _SHOWN)}


_WORST: Final = ("refused", "ignored", "approximated", "honoured")


def _manifests(form: Shown) -> bytes:
    return str(form.get("file") or form.get("manifests", "")).encode()


async def _read_form(request: web.Request) -> Shown:
    """Return the fields of a form, of which a file may be one; nothing if the page is only looked at.

    Raises:
        InvalidRequest: it is too large, or no form.
        web.HTTPForbidden: it is not of this session.
    """
    if request.method != "POST":
        return {}
    fields: Shown = {}
    size = count = 0
    try:
        async for part in await request.multipart():
            count += 1
            if count > _MAX_FIELDS:
                raise InvalidRequest(f"the form cannot be read: it has more than {_MAX_FIELDS} fields")
            if not isinstance(part, BodyPartReader) or part.name is None:
                continue
            content = bytearray()
            while chunk := await part.read_chunk():
                size += len(chunk)
                if size > MAX_MANIFESTS + 4096:
                    raise InvalidRequest(f"that is too much: at most {MAX_MANIFESTS:,} bytes")
                content += chunk
            fields[part.name] = content.decode("utf-8", "replace")
    except (ValueError, AssertionError, RuntimeError, HttpProcessingError) as error:
        raise InvalidRequest(f"the form cannot be read: {error}") from None
    if not hmac.compare_digest(fields.pop("token", "").encode(), request[FORM_TOKEN].encode()):
        raise web.HTTPForbidden(text="this form is of another session: load the page again\n")
    text = fields.get("file") or fields.get("manifests", "")
    return {**fields, "text": text if len(text) <= _KEPT_TEXT else ""}
