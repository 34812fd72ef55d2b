"""Upstreams that are encoded without their models are encoded as these are."""

from hypothesis import given
from hypothesis import strategies as st

from headgate.common.table import Endpoint, Provenance, Upstream
from headgate.common.table.plain import PlainEndpoint, encode_plain_upstream
from headgate.common.table_image import encode_entry

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
endpoints = st.fixed_dictionaries(
    {"address": texts, "port": st.integers(1, 65535)},
    optional={
        "zone": texts,
        "cluster": texts,
        "ready": st.booleans(),
        "serving": st.booleans(),
        "terminating": st.booleans(),
    },
)


@given(st.lists(endpoints, min_size=1, max_size=4), texts, texts, texts, texts)
def test_they_are_the_same_to_the_byte(
    fields: list[dict[str, object]], key: str, cluster: str, namespace: str, name: str
) -> None:
    entry = Upstream(
        key=key,
        endpoints=tuple(Endpoint.model_validate(each) for each in fields),
        provenance=Provenance(cluster=cluster, kind="Service", namespace=namespace, name=name),
    )
    plain = [PlainEndpoint(**each) for each in fields]  # type: ignore[arg-type]
    assert encode_plain_upstream(key, plain, cluster, namespace, name) == encode_entry(entry)


def test_all_control_characters_are_written_alike() -> None:
    text = "".join(map(chr, range(0x100))) + "\u2028\uffff\U0001f600"
    entry = Upstream(
        key=text,
        endpoints=(Endpoint(address=text, port=1),),
        provenance=Provenance(cluster=text, kind="Service", namespace="n", name="s"),
    )
    assert encode_plain_upstream(text, [PlainEndpoint(text, 1)], text, "n", "s") == encode_entry(entry)


def test_plain_endpoints_have_fields_and_defaults_of_endpoints_in_their_order() -> None:
    known = {name: field.get_default() for name, field in Endpoint.model_fields.items()}
    own = PlainEndpoint.__struct_fields__
    assert [name for name in known if name in own] == list(own)
    assert PlainEndpoint.__struct_defaults__ == tuple(known[name] for name in own[2:])
