"""Entry points: the ports of the gateways that objects name."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from headgate.common.problems import Problem
from headgate.translator.manifests.specs import refuse, warn
from headgate.translator.world.entry_points import EntryPoint

FIELD: Final = "spec.entryPoints"


def entry_points_of(
    names: Sequence[str],
    all_points: Sequence[EntryPoint],
    problems: list[Problem],
    *,
    is_udp: bool,
    field: str = FIELD,
) -> tuple[EntryPoint, ...]:
    """Return the entry points that an object names; without names these are the default ones.

    Those that there are not, or that are for UDP where the object is for TCP, are left out, which `problems` say.
    """
    there: Mapping[str, EntryPoint] = {one.name: one for one in all_points}
    if names:
        found = tuple(_found(names, there, problems, is_udp=is_udp, field=field))
    else:
        found = tuple(one for one in all_points if one.is_default and (one.protocol == "udp") is is_udp)
    if not found:
        problems.append(refuse("EntryPointNotFound", field, "must name an entry point that serves these routes"))
    return found


def _found(
    names: Sequence[str], there: Mapping[str, EntryPoint], problems: list[Problem], *, is_udp: bool, field: str
) -> Iterator[EntryPoint]:
    for name in dict.fromkeys(names):
        at, one = f"{field}[{names.index(name)}]" if field == FIELD else field, there.get(name)
        if one is None:
            message = f"there is no such entry point; there are {', '.join(there)}"
            problems.append(warn("EntryPointNotFound", at, message, name))
        elif (one.protocol == "udp") is not is_udp:
            message = f"is for {'UDP' if one.protocol == 'udp' else 'TCP'}, and these routes are not"
            problems.append(warn("EntryPointNotFound", at, message, name))
        else:
            yield one
