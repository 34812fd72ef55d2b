"""The version of a release: one for all parts, in every file that names it."""

import re
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
DISTRIBUTIONS: Final = (
    "libs/common",
    "libs/operations",
    "services/watcher",
    "services/translator",
    "services/gateway",
    "services/console",
    "cli",
)
VERSION: Final = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")


class Place(NamedTuple):
    """Where a version stands."""

    path: Path
    pattern: re.Pattern[str]
    """With the version as its second group."""


def places(root: Path = ROOT) -> list[Place]:
    """Return all of them."""
    own = re.compile(r'(?m)^(version = "|\s+"headgate-ingress-\w+==)([^"]+)')
    found = [Place(root / folder / "pyproject.toml", own) for folder in DISTRIBUTIONS]
    found.append(
        Place(root / "deploy/helm/headgate/Chart.yaml", re.compile(r'(?m)^(version: |appVersion: "?)([^"\s]+)'))
    )
    found.append(Place(root / "Dockerfile", re.compile(r"(?m)^(ARG VERSION=)(\S+)")))
    return found


def versions(root: Path = ROOT) -> dict[str, set[str]]:
    """Return the versions that each file names."""
    return {
        str(place.path.relative_to(root)): {found[2] for found in place.pattern.finditer(place.path.read_text())}
        for place in places(root)
    }


def current(root: Path = ROOT) -> str:
    """Return the version of the checkout.

    Raises:
        ValueError: the files disagree.
    """
    named = versions(root)
    all_of_them = {one for found in named.values() for one in found}
    if len(all_of_them) != 1:
        shown = "; ".join(f"{path}: {', '.join(sorted(found)) or 'none'}" for path, found in named.items())
        raise ValueError(f"the files name different versions: {shown}")
    return all_of_them.pop()


def set_version(version: str, root: Path = ROOT) -> list[Path]:
    """Write a version into every file that names it; return those that changed.

    Raises:
        ValueError: it is no version.
    """
    if not VERSION.fullmatch(version):
        raise ValueError(f"{version!r} is no version such as 1.2.3 or 1.2.3rc1")
    changed = []
    for path, pattern in places(root):
        before = path.read_text()
        after = pattern.sub(lambda found: found[1] + version, before)
        if after != before:
            path.write_text(after)
            changed.append(path)
    return changed
