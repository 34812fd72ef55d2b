"""Whether a kubeconfig file can be used, found out without asking a server."""

from pathlib import Path
from typing import Any

import yaml

from headgate.watcher.errors import ClusterConfigError


def check_kubeconfig(path: Path, context: str) -> None:
    """Look for what no server could mend: no YAML, no contexts, none of the name that is wanted.

    Args:
        path: one file.
        context: that is wanted; empty for the file's current one.

    Raises:
        ClusterConfigError: one line that names the contexts which exist.
    """
    document = _read(path)
    contexts = _names(document.get("contexts"))
    if not contexts:
        raise ClusterConfigError(f"kubeconfig {path} has no contexts: is it a kubeconfig?")
    there = f"there {'is' if len(contexts) == 1 else 'are'} {', '.join(contexts)}"
    wanted = context or document.get("current-context")
    if not wanted:
        raise ClusterConfigError(f"kubeconfig {path} names no current context: give --context NAME; {there}")
    if wanted not in contexts:
        which = f"{wanted!r}" if context else f"{wanted!r}, which it names as the current one"
        raise ClusterConfigError(f"kubeconfig {path} has no context {which}; {there}")
    found = next(one for one in document["contexts"] if isinstance(one, dict) and one.get("name") == wanted)
    clusters = _names(document.get("clusters"))
    cluster = _member(found.get("context"), "cluster")
    if cluster not in clusters:
        known = f"there {'is' if len(clusters) == 1 else 'are'} {', '.join(clusters)}" if clusters else "there is none"
        raise ClusterConfigError(f"kubeconfig {path}: context {wanted!r} names a cluster {cluster!r}; {known}")


def _read(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise ClusterConfigError(f"kubeconfig {path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark is not None else ""
        raise ClusterConfigError(f"kubeconfig {path} is not YAML{line}: {getattr(error, 'problem', error)}") from error
    if not isinstance(document, dict):
        raise ClusterConfigError(f"kubeconfig {path} holds no object: is it a kubeconfig?")
    return document


def _names(members: Any) -> list[str]:
    if not isinstance(members, list):
        return []
    return [str(one["name"]) for one in members if isinstance(one, dict) and one.get("name")]


def _member(value: Any, name: str) -> str:
    return str(value.get(name) or "") if isinstance(value, dict) else ""
