"""Files that routes name: only below a folder that the operator of the gateway allows."""

from pathlib import Path


def file_below(folder: Path, path: str, setting: str) -> Path:
    """Return a file below the folder that a setting names, by its path there or its absolute one, links followed.

    Raises:
        ValueError: it is elsewhere, or the path cannot be that of a file.
    """
    base = folder.resolve()
    found = (base / path).resolve()
    if base not in found.parents:
        # Clients of the route may read this, and where the folder is is not their business.
        raise ValueError(f"{path} is not below the folder that the setting {setting} names")
    return found
