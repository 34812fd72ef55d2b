"""Which release of Headgate runs."""

from importlib.metadata import version


def release() -> str:
    """Return its version."""
    return version("headgate-ingress-common")
