"""How the backends of a canary are spoken to: as the main Ingress of their path says.

ingress-nginx chooses between the main backend and the canary within the location of the main Ingress
(`mergeAlternativeBackends`): protocol, Host and TLS are the location's, how endpoints are chosen is the backend's own.
Main Ingresses are looked for in the canary's namespace, as a host gives its guests no canaries.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from headgate.common.resources import ObjectRef
from headgate.common.table import ANY_HOST
from headgate.translator.dialects.ingress.legacy import is_legacy, upgrade
from headgate.translator.dialects.ingress.nginx.facts import HostQuestion, served_with
from headgate.translator.dialects.ingress.nginx.hosts import UPSTREAM_HOSTS
from headgate.translator.dialects.ingress.nginx.ingress import NginxIngress
from headgate.translator.dialects.ingress.parse import IngressSpec, PathRule, parse_ingress
from headgate.translator.manifests.patches import NO_UPSTREAM_PATCH, UpstreamPatch
from headgate.translator.upstreams.overridden import Override
from headgate.translator.world.graph import Lookups


class Speech(NamedTuple):
    """How the endpoints of a backend are spoken to, where not as its Service says."""

    plain: Override | None
    secured: Override | None
    """For requests that came over TLS, where that differs."""

    @property
    def follows_scheme(self) -> bool:
        """Whether there is a second upstream for requests that came over TLS."""
        return self.secured is not None


_AS_THE_SERVICE = Speech(None, None)


def speech_of(nginx: NginxIngress) -> Speech:
    """Return what an Ingress says of its own backends."""
    if nginx.policy is None:
        return _AS_THE_SERVICE
    return Speech(_override(nginx.upstream), _override(nginx.secured_upstream) if nginx.follows_scheme else None)


def speech_of_canary(ref: ObjectRef, spec: IngressSpec, nginx: NginxIngress, lookups: Lookups) -> Mapping[str, Speech]:
    """Return how the backends of a canary are spoken to, by the fields in which they are written."""
    found: dict[str, Speech] = {}
    for rule in spec.rules:
        mains = tuple(_mains(ref, rule.host, lookups))
        for path in rule.paths:
            main = next((one for one in mains if one.has(rule.host, path)), None)
            found[path.backend.field] = _as_main(nginx, main)
    if spec.default_backend is not None:
        host = next((rule.host for rule in spec.rules), ANY_HOST)
        main = next((one for one in _mains(ref, host, lookups) if one.spec.default_backend is not None), None)
        found[spec.default_backend.field] = _as_main(nginx, main)
    return found


class _Main(NamedTuple):
    spec: IngressSpec
    nginx: NginxIngress

    def has(self, host: str, path: PathRule) -> bool:
        """Whether it has a path; of patterns the types do not count."""
        any_type = self.nginx.has_patterns(host)
        own = (each for rule in self.spec.rules if rule.host == host for each in rule.paths)
        return any(each.path == path.path and (any_type or each.type is path.type) for each in own)


def _mains(ref: ObjectRef, host: str, lookups: Lookups) -> Iterator[_Main]:
    """Yield the Ingresses that say how upstreams of a host are spoken to, the oldest first."""
    if lookups.is_assumed:
        return
    for manifest in served_with(lookups, UPSTREAM_HOSTS, HostQuestion(ref.cluster, ref.namespace, host)):
        nginx = NginxIngress(ref, manifest, lookups)
        if nginx.policy is not None and nginx.policy.canary is None:
            spec = parse_ingress(upgrade(manifest) if is_legacy(manifest) else manifest, [], nginx.path_type)
            yield _Main(spec, nginx)


def _as_main(nginx: NginxIngress, main: _Main | None) -> Speech:
    balancing = {"balancing": nginx.upstream.balancing}
    if main is None:
        return Speech(_override(NO_UPSTREAM_PATCH.model_copy(update=balancing)), None)
    plain, secured = main.nginx.upstream, main.nginx.secured_upstream
    of_tls = _override(secured.model_copy(update=balancing)) if main.nginx.follows_scheme else None
    return Speech(_override(plain.model_copy(update=balancing)), of_tls)


def _override(patch: UpstreamPatch) -> Override | None:
    return Override.of(patch) if patch.said else None
