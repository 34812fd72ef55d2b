"""A question to a service on the bus, of which one answer counts."""

from collections.abc import Callable, Mapping
from typing import TypeVar

import nats.errors

from headgate.common.bus.connection import Bus
from headgate.common.errors import DecodeError, NoAnswer, NotPermitted

T = TypeVar("T")


async def ask_translator(
    bus: Bus,
    subject: str,
    question: bytes,
    read: Callable[[bytes], T],
    timeout_s: float,
    headers: Mapping[str, str] | None = None,
) -> T:
    """Ask the translators that listen to a subject, and read the first answer.

    Raises:
        NoAnswer: there was none in time, or none that can be read; says why.
    """
    if not bus.is_connected:
        raise NoAnswer("not connected to NATS")
    try:
        return read((await bus.request(subject, question, headers=headers, timeout_s=timeout_s)).data)
    except nats.errors.NoRespondersError as error:
        raise NoAnswer("no translator listens") from error
    except TimeoutError as error:
        raise NoAnswer(f"no translator answered within {timeout_s:g} s") from error
    except (nats.errors.Error, NotPermitted, DecodeError) as error:
        raise NoAnswer(str(error)) from error
