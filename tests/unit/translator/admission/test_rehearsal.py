"""A rehearsal looks at the few objects that can be concerned, and comes to what merging all of them would."""

from random import Random
from typing import Any

import pytest

from fakes.translator.deltas import applied, deleted, ingress, ref_of, service, tls_secret
from headgate.translator.admission.dry_world import DryWorld
from headgate.translator.assembly.conflicts import merge_host
from headgate.translator.composition import DIALECTS
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.translation import Translation

HOSTS, PATHS = ("a.example", "b.example", "*.example"), ("/", "/x", "/y")
ANNOTATIONS: tuple[dict[str, str], ...] = (
    {},
    {"headgate.dev/canary": "true", "headgate.dev/canary-weight": "10"},
    {"headgate.dev/min-tls-version": "1.3"},
    {"headgate.dev/client-auth-secret": "authorities"},
    {"headgate.dev/match-headers": "x-beta"},
)


def random_ingress(random: Random, name: str) -> Any:
    manifest = ingress(
        name,
        namespace=random.choice(("default", "default", "shop")),
        created=f"2024-01-{random.randrange(1, 28):02d}T00:00:00Z",
        annotations=random.choice(ANNOTATIONS),
        spec={
            "rules": [
                ingress("x", host=random.choice(HOSTS), path=random.choice(PATHS))["spec"]["rules"][0]
                for _ in range(random.randrange(1, 4))
            ]
        },
    )
    return manifest


def settled(translation: Translation) -> Translation:
    for _ in translation.settle():
        pass
    return translation


def random_world(random: Random) -> Translation:
    translation = Translation(DIALECTS)
    translation.activate("a")
    authorities = tls_secret("authorities", "x.example", authorities_pem="-")
    for manifest in (service("web"), authorities, *(random_ingress(random, f"i{n}") for n in range(12))):
        translation.apply(applied(manifest))
    settled(translation)
    for _ in range(8):
        manifest = random_ingress(random, f"i{random.randrange(12)}")
        translation.apply(deleted(manifest) if random.random() < 0.3 else applied(manifest))
        settled(translation)
    return translation


def proposed(translation: Translation, manifest: Any) -> Fragment:
    ref = ref_of(manifest)
    inspected = translation.world.inspect(ref, manifest)
    assert inspected is not None
    fragment = translation.translate(
        ref, DryWorld(translation.world, translation.graph, ref.cluster, {ref: inspected.judged})
    )
    assert fragment is not None
    return fragment


@pytest.mark.parametrize("seed", range(40))
def test_it_comes_to_what_merging_everything_would(seed: int) -> None:
    random = Random(seed)
    translation = random_world(random)
    assembly = translation.assembly
    for name in ("i3", "new"):
        fragment = proposed(translation, random_ingress(random, name))
        ref = fragment.identity.ref
        others = [each for other, each in assembly.fragments.items() if other != ref]
        rehearsed = assembly.rehearse(ref, fragment)
        for host in HOSTS:
            everything = merge_host(host, [*others, fragment]).lost
            looked_at, now = rehearsed.get(("host", host), {}), assembly.losses.get(("host", host), {})
            assert set(looked_at.get(ref, ())) == set(everything.get(ref, ()))
            for other in everything.keys() - {ref}:
                expected = set(everything[other])
                assert set(looked_at.get(other, ())) <= expected
                assert expected - set(now.get(other, ())) <= set(looked_at.get(other, ()))
