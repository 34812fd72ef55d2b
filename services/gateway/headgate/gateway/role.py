"""What a worker process is told by the parent that started it, besides the settings that both read."""

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

VARIABLE = "HEADGATE_GATEWAY_WORKER"


class WorkerRole(BaseModel):
    """Place of one worker among those of a replica."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    index: int = 0
    http_port: int | None = None
    """Reserved by the parent, shared with SO_REUSEPORT; None: the worker is alone and binds what the settings say."""
    https_port: int | None = None
    admin_socket: Path | None = None
    """Unix socket on which the parent asks for metrics and readiness; None: the worker has the admin port itself."""

    workers: int = 1
    """How many there are."""
    ticket_seed: Path | None = None
    """File with the seed of session tickets that the workers of the replica share; None: there are no others."""

    counts_descriptor: int | None = None
    """Of the memory in which the workers show each other what they count; None: there are no others."""
    answers: Path | None = None
    """Folder in which the workers keep answers for each other; None: there are no others."""

    @property
    def is_alone(self) -> bool:
        """Whether there is no parent."""
        return self.admin_socket is None

    @property
    def writes_last_good(self) -> bool:
        """One worker writes the file that all of them read."""
        return self.index == 0

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return the environment for a process in this role."""
        return {**base, VARIABLE: self.model_dump_json()}


def role_of_this_process() -> WorkerRole | None:
    """Return the role that a parent gave; None for a process that was started by hand."""
    text = os.environ.get(VARIABLE)
    return WorkerRole.model_validate_json(text) if text else None
