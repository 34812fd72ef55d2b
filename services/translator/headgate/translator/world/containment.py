"""The one place where an unexpected exception is caught.

Translation of one object must never stop that of the others. What users write wrongly is reported by ordinary values
(`Problem`); an exception that arrives here is a mistake of ours, so it is logged with its traceback, and a
fallback stands in for the one value that could not be computed.
"""

import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")
F = TypeVar("F")
P = ParamSpec("P")


def contain(
    compute: Callable[P, T],
    fallback: Callable[[Exception], F],
    work: str,
    about: object,
    *arguments: P.args,
    **named: P.kwargs,
) -> T | F:
    """Return `compute(*arguments)`, or `fallback(error)` where that raises; the log names the work, and what it was
    about.
    """
    try:
        return compute(*arguments, **named)
    except Exception as error:
        logger.exception("internal error: %s %s", work, about)
        return fallback(error)
