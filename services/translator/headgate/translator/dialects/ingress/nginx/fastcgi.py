"""What endpoints are told by FastCGI: `fastcgi-index`, and the parameters in a ConfigMap."""

import re
from typing import Final

from headgate.common.resources import ObjectRef
from headgate.common.table import FastCgi
from headgate.common.table.fastcgi import unknown_variable
from headgate.translator.annotations.reading import Reading
from headgate.translator.dialects.ingress.nginx.headers import UNREAD
from headgate.translator.manifests.reading import shown
from headgate.translator.sources.config_maps import CONFIG_MAPS
from headgate.translator.world.graph import Lookups

_PARAMS: Final = "fastcgi-params-configmap"
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_VALUE: Final = re.compile(r"[A-Za-z0-9_${}/.-]*")
_MOST: Final = 1000


def fastcgi(ref: ObjectRef, reading: Reading, lookups: Lookups) -> FastCgi:
    """Return the settings of an Ingress; what is wrong goes to the reading."""
    written = reading.group("fastcgi")
    params = _params(ref, written.get("params", ""), reading, lookups)
    return FastCgi(index=written.get("index", ""), params=params)


def _params(ref: ObjectRef, named: str, reading: Reading, lookups: Lookups) -> tuple[tuple[str, str], ...]:
    namespace, _, name = named.rpartition("/")
    if not name or lookups.is_assumed:
        return ()
    if namespace not in ("", ref.namespace) and not reading.group("security").get("crosses_namespaces", False):
        reading.caution(_PARAMS, f"must be a ConfigMap of namespace {ref.namespace}, and is left out")
        return ()
    place = f"ConfigMap {ref.namespace}/{name}"
    found = lookups.get(CONFIG_MAPS, ref.namespace, name)
    if found is None:
        reading.close(_PARAMS, f"{place} {UNREAD}")
        return ()
    if fault := _fault(found.data):
        reading.refuse(_PARAMS, f"{place}: {fault}")
        return ()
    return found.data


def _fault(data: tuple[tuple[str, str], ...]) -> str:
    """Say what is wrong with parameters, or nothing."""
    if len(data) > _MOST:
        return f"has {len(data)} keys, and at most {_MOST} are taken"
    for name, value in data:
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            return f"key {shown(name)} has a value of other characters than letters, digits and -_${{}}/."
        if variable := unknown_variable(value):
            return f"key {name} has {variable}, which is no variable of nginx that is known here"
    return ""
