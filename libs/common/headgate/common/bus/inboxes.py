"""Where answers may go. Who asks names the subject, and who answers publishes there with rights of its own."""

from typing import Final

_NOT_INBOXES: Final = ("$", "headgate.")
"""Beginnings of what the server, streams and services listen to: an answer there would be taken for something else."""


def is_inbox(subject: str) -> bool:
    """Tell whether an answer may be published to a subject; what asks for none has an empty one."""
    return bool(subject) and not subject.startswith(_NOT_INBOXES)
