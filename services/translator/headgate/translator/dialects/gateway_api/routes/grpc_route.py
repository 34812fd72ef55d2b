"""One GRPCRoute to one fragment.

A call is a POST to `/package.Service/Method`, so that its routes are those of paths: an exact one for a method of a
service, a prefix for a service. Answers that are the gateway's own have a status of gRPC where calls are answered.
"""

import re
from collections.abc import Iterator
from typing import Final

from headgate.common.problems import Problem
from headgate.common.resources import GRPC_ROUTE, JsonObject, ObjectRef
from headgate.common.table import PathMatch, PathType, Rank
from headgate.translator.dialects.gateway_api.models.grpc_route import GrpcMatch, GrpcMethod, GrpcRule
from headgate.translator.dialects.gateway_api.models.route import RouteRule
from headgate.translator.dialects.gateway_api.routes.context import RouteContext
from headgate.translator.dialects.gateway_api.routes.matching import (
    MatchedRequests,
    Unmatched,
    compare_headers,
    whole,
)
from headgate.translator.dialects.gateway_api.routes.request_route import ReadRule, translate_request_route
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.manifests.patches import all_of
from headgate.translator.manifests.specs import Part, Spec, refuse
from headgate.translator.world.graph import Lookups

_COMMON: Final = ("name", "filters", "backend_refs", "session_persistence")
"""Fields that rules of HTTPRoutes have too."""
_ANY: Final = "[^/]+"
_NAME: Final = re.compile(r"[^/\s]+")
_EVERY_CALL: Final = GrpcMatch()


def translate_grpc_route(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what a GRPCRoute that is ours contributes."""
    return translate_request_route(manifest, RouteContext(ref, GRPC_ROUTE.kind, lookups, is_grpc=True), _read_rules)


def _read_rules(spec: Spec, problems: list[Problem]) -> Iterator[ReadRule]:
    for rule, field in spec.each("rules", GrpcRule):
        common = RouteRule().model_copy(update={name: getattr(rule, name) for name in _COMMON})
        yield ReadRule(Part(common, field), tuple(_read_matches(rule, field, problems)))


def _read_matches(rule: GrpcRule, at: str, problems: list[Problem]) -> Iterator[MatchedRequests]:
    """Yield the calls of a rule; a match that cannot be followed takes none, and `problems` get why."""
    for index, match in enumerate(rule.matches or (_EVERY_CALL,)):
        field = f"{at}.matches[{index}]" if rule.matches else at
        try:
            path = _path(match.method)
            headers = compare_headers(match.headers)
        except Unmatched as wrong:
            problems.append(refuse("UnsupportedValue", f"{field}.{wrong.field}", str(wrong), wrong.value))
            continue
        yield MatchedRequests(path, all_of(headers), Rank(headers=len(headers)), str(index), field)


def _path(written: GrpcMethod | None) -> PathMatch:
    if written is None:
        return PathMatch(type=PathType.PREFIX, value="/")
    service, method = written.service, written.method
    if not service and not method:
        raise Unmatched("method", "must have a service or a method", "")
    if written.type == "RegularExpression":
        parts = [
            whole(text, f"method.{name}")[1:-1] if text else _ANY
            for name, text in (("service", service), ("method", method))
        ]
        return PathMatch(type=PathType.REGEX, value=f"^/{'/'.join(parts)}$")
    for name, text in (("service", service), ("method", method)):
        if text and not _NAME.fullmatch(text):
            raise Unmatched(f"method.{name}", "must be a name without slashes and blanks", text)
    if not method:
        return PathMatch(type=PathType.PREFIX, value=f"/{service}/")
    if not service:
        return PathMatch(type=PathType.REGEX, value=f"^/{_ANY}/{re.escape(method)}$")
    return PathMatch(type=PathType.EXACT, value=f"/{service}/{method}")
