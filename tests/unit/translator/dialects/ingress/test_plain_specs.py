"""A spec of the usual sort is read on a short way, and says what it says on the long one."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headgate.common.problems import Problem
from headgate.common.table import PathType
from headgate.translator.dialects.ingress.parse import IngressSpec, parse_ingress

hosts = st.sampled_from(["a.example", "*.example", "A.example", "1.2.3.4", "a:80", "", "-a", "a" * 254, None, 7])
values = st.sampled_from(
    ["/", "/a", "/a/", "/a/b.c", "/v1.0", "/.", "/a/..", "//", "/a//b", "/./a", "/%2f", "a", "", "/" + "a" * 4096, None]
)
types = st.sampled_from(["Prefix", "Exact", "ImplementationSpecific", "prefix", "", None, 1])
ports = st.one_of(
    st.fixed_dictionaries({"number": st.sampled_from([80, 0, 65535, 65536, True, "80", None])}),
    st.fixed_dictionaries({"name": st.sampled_from(["http", "80", "h" * 16, "", None, 5])}),
    st.sampled_from([{}, None, {"number": 80, "name": "http"}, {"number": None, "name": "http"}, {"more": 1}]),
)
names = st.sampled_from(["web", "", None, 3])
services = st.one_of(st.fixed_dictionaries({"name": names, "port": ports}), st.sampled_from([None, {"name": "web"}]))
backends = st.one_of(
    st.fixed_dictionaries({"service": services}), st.sampled_from([None, {}, {"resource": {"kind": "K", "name": "n"}}])
)
paths = st.one_of(
    st.fixed_dictionaries({"path": values, "pathType": types, "backend": backends}, optional={"more": st.just(1)}),
    st.sampled_from([None, "path", {}]),
)
https = st.one_of(st.fixed_dictionaries({"paths": st.lists(paths, max_size=3)}), st.sampled_from([None, {}, []]))
rules = st.one_of(st.fixed_dictionaries({"http": https}, optional={"host": hosts}), st.sampled_from([None, {}]))
entries = st.one_of(
    st.fixed_dictionaries(
        {}, optional={"hosts": st.lists(hosts, max_size=2), "secretName": st.sampled_from(["s", "", None, 1])}
    ),
    st.sampled_from([None, []]),
)
specs = st.fixed_dictionaries(
    {"rules": st.lists(rules, min_size=1, max_size=2)},
    optional={"ingressClassName": st.sampled_from(["c", "", None, 1]), "tls": st.lists(entries, max_size=2)},
)


def read(spec: Any, specific: PathType) -> tuple[IngressSpec, list[Problem]]:
    problems: list[Problem] = []
    return parse_ingress({"spec": spec}, problems, specific), problems


@given(specs, st.sampled_from([PathType.PREFIX, PathType.STRING_PREFIX, PathType.REGEX]))
def test_both_ways_say_the_same(spec: Any, specific: PathType) -> None:
    # A field that is null counts as absent, and only the long way reads it.
    assert read(spec, specific) == read({**spec, "defaultBackend": None}, specific)


good_paths = st.fixed_dictionaries(
    {
        "path": st.sampled_from(["/", "/a", "/a/b.c/"]),
        "pathType": st.sampled_from(["Prefix", "Exact", "ImplementationSpecific"]),
        "backend": st.sampled_from(
            [{"service": {"name": "web", "port": port}} for port in ({"number": 80}, {"name": "http"})]
        ),
    }
)
good_rules = st.fixed_dictionaries(
    {"http": st.fixed_dictionaries({"paths": st.lists(good_paths, min_size=1, max_size=3)})},
    optional={"host": st.sampled_from(["a.example", "*.example"])},
)
good_entries = st.fixed_dictionaries({"hosts": st.just(["a.example", "b.example"]), "secretName": st.just("s")})
good_specs = st.fixed_dictionaries(
    {"rules": st.lists(good_rules, min_size=1, max_size=3)},
    optional={"ingressClassName": st.just("c"), "tls": st.lists(good_entries, max_size=2)},
)


@given(good_specs, st.sampled_from([PathType.PREFIX, PathType.STRING_PREFIX]))
def test_both_ways_say_the_same_of_specs_without_a_mistake(spec: Any, specific: PathType) -> None:
    found, problems = read(spec, specific)
    assert (found, problems) == read({**spec, "defaultBackend": None}, specific)
    assert len(found.rules) == len(spec["rules"])
