"""What the translator wants written back to an object: its addresses, conditions and Events."""

import ipaddress
import re
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from headgate.common.deltas import escape_token
from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef

STATUS_STREAM = "HEADGATE_STATUS"
STATUS_PREFIX = "headgate.status"


_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NUMBERS = re.compile(r"[0-9.]+")


def is_address(text: str) -> bool:
    """Return whether an API server takes a text as address or host name of a load balancer."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return len(text) <= 253 and bool(_NAME.fullmatch(text)) and not _NUMBERS.fullmatch(text)
    return True


def status_subject(ref: ObjectRef) -> str:
    """Subject of an object's wanted status."""
    return ".".join((STATUS_PREFIX, *map(escape_token, ref)))


class LoadBalancerAddress(BaseModel):
    """One entry of `status.loadBalancer.ingress`: an address or a host name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ip: str | None = None
    hostname: str | None = None


class EventNote(BaseModel):
    """A Kubernetes Event about an object."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["Normal", "Warning"]
    reason: str
    note: str
    """At most 1024 characters, the API's limit."""


class StatusUpdate(BaseModel):
    """The wanted status of one object; replaces the one before."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ref: ObjectRef
    api_version: str
    """Of the object as it was read: `networking.k8s.io/v1`."""
    kind: str
    uid: str
    is_accepted: bool
    """Whether the object is ours and served at least in part; if not ours, nothing is written to its status."""
    addresses: tuple[LoadBalancerAddress, ...] | None = None
    """None leaves the object's addresses alone; empty removes those that we wrote."""
    problems: tuple[Problem, ...] = ()
    events: tuple[EventNote, ...] = ()
    at: datetime
    traceparent: str | None = None
