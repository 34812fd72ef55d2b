"""What a CAS server says, in XML: the answer to a ticket, and that a session has ended.

The first is that of the CAS protocol 3.0 (appendix A, which has that of 2.0 in it), the second a `LogoutRequest` of
SAML (appendix C). Elements are told by their local names: servers differ in the prefix, and some leave the namespace
out. Documents with a DOCTYPE or entities are refused.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple


class Unreadable(Exception):
    """A message is not what it should be; the text says why."""


class CasUser(NamedTuple):
    """Who the ticket is for."""

    name: str
    attributes: dict[str, list[str]]


def read_validation(document: bytes) -> CasUser:
    """Return who a ticket was issued for. Raises Unreadable, with what the server says of a ticket that is not good."""
    root = _parsed(document)
    if _local(root) != "serviceResponse" or len(root) != 1:
        raise Unreadable("it is no serviceResponse with one verdict")
    verdict = root[0]
    if _local(verdict) == "authenticationFailure":
        said = " ".join((verdict.text or "").split())[:200]
        raise Unreadable(f"{verdict.get('code', 'authenticationFailure')[:40]} {said}".strip())
    if _local(verdict) != "authenticationSuccess":
        raise Unreadable("its verdict is neither authenticationSuccess nor authenticationFailure")
    users = [_text(each) for each in verdict if _local(each) == "user"]
    if len(users) != 1 or not users[0]:
        raise Unreadable("it names no user, or several")
    attributes: dict[str, list[str]] = {}
    for group in verdict:
        for each in group if _local(group) == "attributes" else ():
            attributes.setdefault(_local(each), []).append(_text(each))
    return CasUser(users[0], attributes)


def read_logout(document: bytes) -> str:
    """Return the ticket whose session has ended. Raises Unreadable."""
    root = _parsed(document)
    tickets = [_text(each) for each in root if _local(each) == "SessionIndex"]
    if _local(root) != "LogoutRequest" or len(tickets) != 1 or not tickets[0]:
        raise Unreadable("it is no LogoutRequest with one SessionIndex")
    return tickets[0]


def _parsed(document: bytes) -> Any:
    from xml.etree.ElementTree import ParseError

    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        return fromstring(document, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError):
        raise Unreadable("it is no XML document without a DOCTYPE") from None


def _local(element: Any) -> str:
    """Return an element's name without its namespace; empty for what is no element."""
    tag = element.tag
    return str(tag).rpartition("}")[2] if isinstance(tag, str) else ""


def _text(element: Any) -> str:
    """Return all the text of an element: comments do not cut it short."""
    parts: Iterator[str] = element.itertext()
    return "".join(parts).strip()
