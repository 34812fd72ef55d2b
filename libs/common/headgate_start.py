"""Where the installed commands begin: sure that `headgate` is Headgate before anything of it is imported.

Headgate lives in the namespace package `headgate`, which several distributions (`headgate-ingress-*`) fill and which
has no file of its own. Somebody else's distribution of the name `headgate` installs a package with one, which hides
ours or runs its own code in our processes.
"""

import sys
from importlib import import_module
from importlib.util import find_spec


def headgate() -> int:
    """Run `headgate`."""
    return _start("headgate.cli.__main__")


def watcher() -> int:
    """Run `headgate-watcher`."""
    return _start("headgate.watcher.__main__")


def translator() -> int:
    """Run `headgate-translator`."""
    return _start("headgate.translator.__main__")


def gateway() -> int:
    """Run `headgate-gateway`."""
    return _start("headgate.gateway.__main__")


def console() -> int:
    """Run `headgate-console`."""
    return _start("headgate.console.__main__")


def _start(module: str) -> int:
    found = find_spec("headgate")
    if found is not None and found.origin is not None:
        print(
            f"headgate: the package {found.origin} is not Headgate's and takes its place: remove it "
            "(pip uninstall headgate); Headgate's distributions are called headgate-ingress",
            file=sys.stderr,
        )
        return 2
    code: int = import_module(module).main()
    return code
