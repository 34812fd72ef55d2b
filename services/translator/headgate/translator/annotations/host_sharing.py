"""The annotation by which a host's owner shares it with other namespaces, on kinds that have no other of ours."""

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject
from headgate.translator.annotations.annotation import PREFIX
from headgate.translator.annotations.reading import ours, read_annotations

NAME = "host-sharing-namespaces"
KEY = f"{PREFIX}{NAME}"


def host_sharing_annotation(manifest: JsonObject) -> JsonObject:
    """Return the annotation as it was written, by its full name; empty without it."""
    return {key: value for key, value in ours(manifest).items() if key == KEY}


def read_host_sharing(manifest: JsonObject, problems: list[Problem]) -> tuple[str, ...]:
    """Return the namespaces that an object shares its hosts with; what is wrong with them goes to `problems`."""
    written = host_sharing_annotation(manifest)
    if not written:
        return ()
    reading = read_annotations("Ingress", written)
    problems += reading.problems
    namespaces: tuple[str, ...] = reading.group("sharing").get("namespaces", ())
    return namespaces
