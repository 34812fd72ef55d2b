"""All questions of the API."""

from typing import Final

from headgate.console.api.answers import (
    answer_audit,
    answer_certificates,
    answer_clusters,
    answer_diff,
    answer_endpoints,
    answer_events,
    answer_explain,
    answer_failed,
    answer_fleet,
    answer_now,
    answer_object,
    answer_objects,
    answer_plan,
    answer_problems,
    answer_revisions,
    answer_rollout,
    answer_route,
    answer_routes,
    answer_search,
    answer_series,
    answer_traffic,
)
from headgate.console.api.question import Parameter, Question
from headgate.console.live.view import WINDOW_S
from headgate.operations.traffic.window import Grouping, Order

_GROUPINGS: Final = tuple(each.value for each in Grouping)
_ORDERS: Final = ("worst", "requests", "errors", "p99", "host")
_TEXT: Final = Parameter("q", "Text within host, path, source or backend", default="")
_OF: Final = Parameter("of", "What has a line of its own", default="route", choices=_GROUPINGS)
_BY: Final = Parameter("by", "What comes first", default="requests", choices=tuple(each.value for each in Order))
_LAST: Final = Parameter("last", "Seconds to look back, at most a day", "integer", 900, low=1, high=86_400)

QUESTIONS: Final = (
    Question("/now", "What runs, what is wrong, and how much traffic there is", answer_now, command="headgate status"),
    Question("/problems", "What is wrong", answer_problems, is_list=True, command="headgate status"),
    Question(
        "/routes",
        f"Routes with their traffic of the last {WINDOW_S:g} seconds",
        answer_routes,
        (
            _TEXT,
            Parameter("host", "Of this host alone", default=""),
            Parameter("broken", "Only those that cannot answer", "boolean", False),
            Parameter("by", "What comes first", default="worst", choices=_ORDERS),
        ),
        is_list=True,
        command="headgate routes",
    ),
    Question(
        "/route",
        "One route: conditions, plugins, backends, endpoints",
        answer_route,
        (Parameter("name", "As /routes has it: HOST|NAME", is_required=True),),
        command="headgate explain METHOD URL",
    ),
    Question(
        "/traffic",
        f"Routes, hosts or endpoints by their traffic of the last {WINDOW_S:g} seconds",
        answer_traffic,
        (_OF, _BY),
        is_list=True,
        command="headgate top",
    ),
    Question(
        "/traffic/series",
        "Traffic by time: of all, or of a route, a host or an endpoint",
        answer_series,
        (
            _OF,
            Parameter("name", "Of which; all without", default=""),
            _LAST,
            Parameter("step", "Seconds of one step", "integer", None, low=1, high=86_400),
        ),
        command="headgate top",
    ),
    Question(
        "/endpoints",
        "Endpoints, first those that get no requests",
        answer_endpoints,
        (
            Parameter("upstream", "Text within the name of the upstream", default=""),
            Parameter("unfit", "Only those that get no requests", "boolean", False),
        ),
        is_list=True,
        command="headgate endpoints",
    ),
    Question(
        "/certificates",
        "Certificates, first those that end first",
        answer_certificates,
        (Parameter("expiring", "Only those that end within so many days", "integer", None, low=0, high=100_000),),
        is_list=True,
        command="headgate certificates",
    ),
    Question(
        "/objects",
        "Objects with problems",
        answer_objects,
        (
            Parameter("q", "Text within kind, namespace or name", default=""),
            Parameter("reason", "Of this reason alone", default=""),
        ),
        is_list=True,
        command="headgate status",
    ),
    Question(
        "/object",
        "How one object stands",
        answer_object,
        (Parameter("object", "KIND/NAMESPACE/NAME, such as ingress/default/web", is_required=True),),
        command="headgate status KIND/NAMESPACE/NAME",
    ),
    Question(
        "/revisions",
        "Revisions, newest first",
        answer_revisions,
        (
            Parameter("since", "A revision or a time", default=""),
            Parameter("until", "A revision or a time", default=""),
            Parameter("at", "A time: the revision that was the newest then", default=""),
            Parameter("host", "Text within a host that was changed", default=""),
        ),
        is_list=True,
        command="headgate history",
    ),
    Question(
        "/diff",
        "What differs between two revisions",
        answer_diff,
        (
            Parameter("from", "A revision: 57, HEAD~1, live, pinned", default="HEAD~1"),
            Parameter("to", "A revision", default="HEAD"),
        ),
        command="headgate diff A B",
    ),
    Question(
        "/events",
        "Changes of objects, newest first",
        answer_events,
        (
            Parameter("cluster", "Of this cluster alone", default=""),
            Parameter("namespace", "Of this namespace alone", default=""),
            Parameter("object", "Of objects of this name alone", default=""),
        ),
        is_list=True,
        command="headgate events",
    ),
    Question(
        "/failed",
        "Requests that were answered with 500 and above, or that a gateway refused, the newest first",
        answer_failed,
        (
            Parameter("host", "Of this host alone", default=""),
            Parameter("route", "Text within the name of the route", default=""),
            Parameter("path", "With which paths begin", default=""),
            Parameter("status", "A code, or the first digit of codes: 5", "integer", None, low=1, high=599),
            Parameter("request_id", "The one of this id", default=""),
        ),
        is_list=True,
        command="headgate explain --request-id ID",
    ),
    Question(
        "/explain",
        "Why a request goes where it goes",
        answer_explain,
        (
            Parameter("method", "Of the request", default="GET"),
            Parameter("url", "Of the request: http://HOST/PATH", is_required=True),
            Parameter("headers", "Of the request, NAME: VALUE, one on each line", default=""),
            Parameter("client", "Address that it comes from", default=""),
            Parameter("revision", "By the table of this revision: 57, HEAD~1", default=""),
        ),
        command="headgate explain METHOD URL",
    ),
    Question(
        "/plan",
        "What manifests would change if they were applied, and what is wrong with them",
        answer_plan,
        (
            Parameter("cluster", "That they are for, if the table has several", default=""),
            Parameter("prune", "Whether what they lack counts as deleted", "boolean", False),
        ),
        takes_manifests=True,
        command="headgate plan FILE",
    ),
    Question(
        "/audit",
        "What becomes of each annotation and field of manifests of another controller",
        answer_audit,
        takes_manifests=True,
        command="headgate audit FILE",
    ),
    Question("/rollout", "How far a changed table has got", answer_rollout, command="headgate rollout"),
    Question(
        "/fleet",
        "Workers of gateways, with the revision that each serves",
        answer_fleet,
        is_list=True,
        command="headgate status",
    ),
    Question(
        "/clusters",
        "Clusters: share, rank, last sign of life",
        answer_clusters,
        is_list=True,
        command="headgate clusters",
    ),
    Question(
        "/search",
        "Hosts, routes and upstreams that have a text in their names",
        answer_search,
        (Parameter("q", "The text", is_required=True),),
    ),
)
STREAM: Final = Question(
    "/stream",
    "What changes, as server-sent events; Last-Event-ID goes on where a connection broke",
    parameters=(Parameter("kinds", "Of revision, report and traffic, with commas", default="revision,report,traffic"),),
)
TAIL: Final = Question(
    "/tail",
    "Finished requests of all gateways, as server-sent events",
    parameters=(
        Parameter("host", "Of this host alone", default=""),
        Parameter("route", "Text within the name of the route", default=""),
        Parameter("path", "With which paths begin", default=""),
        Parameter("status", "A code, or the first digit of codes: 5", "integer", None, low=1, high=599),
        Parameter("client", "Address of the client", default=""),
        Parameter("request_id", "Of one request", default=""),
        Parameter("slower_than_ms", "Only slower ones", "number", 0.0, low=0, high=1e7),
        Parameter("share", "Of the requests, from 0 to 1", "number", 1.0, low=0, high=1),
    ),
    command="headgate tail",
)
