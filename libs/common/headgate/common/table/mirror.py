"""Copies of requests that are sent elsewhere; gateways never look at their answers."""

from typing import Literal, Self

from pydantic import Field, model_validator

from headgate.common.table.base import Entry


class Mirror(Entry):
    """Where copies of some requests go. The requests themselves wait for nothing of it.

    A copy that would be one too many, or whose body is too long, is dropped and not queued.
    """

    upstream: str = ""
    """Key of an `Upstream` entry."""
    group: str = ""
    """Key of a `BackendGroup` entry, instead of an upstream. What is done on the way to its backends is not done for
    copies."""
    address: str = ""
    """Instead of both: a URL without a path, `http://shadow.example:8080`."""
    share: float = Field(default=1.0, ge=0, le=1)
    """Of the requests, how many are copied."""
    path: str = ""
    """What the path of a copy is made of; empty: it is the request's."""
    path_mode: Literal["replace", "prefix"] = "replace"
    """Whether `path` stands in the place of the request's own, or before it."""
    host: str = ""
    """Host of a copy; empty: the request's with an upstream or a group, that of the URL with an address."""
    with_body: bool = True
    max_body: int = Field(default=1 << 20, ge=0)
    """Bytes; a request with a longer body is not copied, if copies have bodies."""
    max_in_flight: int = Field(default=128, ge=1)
    """Copies under way, for each worker."""
    timeout_s: float = Field(default=10, gt=0, le=600)
    """For a copy and its answer."""
    verify_tls: bool = True
    """Check the certificate of an address."""

    @model_validator(mode="after")
    def _has_one_target(self) -> Self:
        if sum(map(bool, (self.upstream, self.group, self.address))) != 1:
            raise ValueError("a mirror needs one of upstream, group and address")
        return self

    @property
    def target(self) -> str:
        """Key of the upstream or of the group, or the address."""
        return self.upstream or self.group or self.address
