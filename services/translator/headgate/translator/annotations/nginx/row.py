"""What a row of the table of ingress-nginx' annotations says beyond those of other vocabularies."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from headgate.translator.annotations.annotation import Annotation

NGINX_PREFIX: Final = "nginx.ingress.kubernetes.io/"


class Risk(IntEnum):
    """How much harm the writer of an annotation can do with it, by the reckoning of ingress-nginx."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2
    CRITICAL = 3


@dataclass(frozen=True, slots=True)
class NginxAnnotation(Annotation):
    """One annotation of ingress-nginx.

    A value that cannot be read leaves the default in force. If `guards` is set, all requests are refused until it is
    mended, and if `drops` is set nothing of the object is served, as ingress-nginx has it for each of them.
    """

    risk: Risk = Risk.LOW
    ignored: str = ""
    """Set if it has no meaning here, and why."""
    refused: str = ""
    """Set if it cannot be followed, and why. One that guards refuses all requests then."""
