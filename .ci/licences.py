"""Check that every installed dependency has a licence that we accept, and that every direct one is documented.

What is shipped with the services must be permissive (or weak copyleft by file, as certifi's list of authorities is);
tools that are only run for development may be under the GPL, as nothing of them is shipped.
"""

import json
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
DISTRIBUTIONS = (
    "headgate-ingress",
    *(f"headgate-ingress-{part}" for part in ("common", "operations", "watcher", "translator", "gateway", "console")),
)
SHIPPED = {
    "Apache-2.0",
    "Apache Software License",
    "MIT",
    "MIT License",
    "MIT-0",
    "BSD License",
    "3-Clause BSD License",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Python Software Foundation License",
    "PSF-2.0",
    "DFSG approved",
    "MPL-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)",
}
TOOLS = SHIPPED | {"GPL-2.0-only"}


def main() -> int:
    """Print what is wrong; return 1 if anything is."""
    shipped = shipped_packages()
    complaints = [
        f"{name}: licence {licence!r} is not one that we accept {'in what we ship' if name in shipped else ''}"
        for name, licence in installed_licences().items()
        if not is_accepted(licence, SHIPPED if name in shipped else TOOLS)
    ]
    complaints += [f"{name}: has no line in docs/dependencies.md" for name in undocumented()]
    print(*complaints, sep="\n") if complaints else print("licences: all accepted, all direct dependencies documented")
    return 1 if complaints else 0


def installed_licences() -> dict[str, str]:
    """Return the licence of every distribution in this environment, ours excepted."""
    command = [sys.executable, "-m", "piplicenses", "--format=json", "--from=mixed"]
    listed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603
    found = {canonicalize_name(row["Name"]): row["License"] for row in listed}
    return {name: licence for name, licence in sorted(found.items()) if not name.startswith("headgate")}


def is_accepted(expression: str, accepted: set[str]) -> bool:
    """Decide on an SPDX expression, or on several classifiers separated by semicolons."""
    parts = re.split(r" AND |;\s*", expression.replace("(MPL 2.0)", "[MPL]"))
    return all(
        any(choice.replace("[MPL]", "(MPL 2.0)").strip() in accepted for choice in part.split(" OR ")) for part in parts
    )


def shipped_packages() -> set[str]:
    """Return our distributions' dependencies and theirs."""
    found: set[str] = set()
    waiting = list(DISTRIBUTIONS)
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        found.add(name)
        try:
            wanted = map(Requirement, requires(name) or ())
        except PackageNotFoundError:
            continue
        waiting += [each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    return found


def undocumented() -> list[str]:
    """Return the direct dependencies that docs/dependencies.md says nothing about."""
    lines = [
        line for name in ("requirements.in", "requirements-dev.in") for line in (ROOT / name).read_text().splitlines()
    ]
    direct = [Requirement(line).name for line in lines if line.strip() and not line.startswith(("#", "-"))]
    documented = (ROOT / "docs" / "dependencies.md").read_text()
    return [name for name in direct if f"`{name}`" not in documented]


if __name__ == "__main__":
    raise SystemExit(main())
