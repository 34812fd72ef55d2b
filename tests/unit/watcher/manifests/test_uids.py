"""The UUIDs of objects from files."""

import uuid

from hypothesis import given
from hypothesis import strategies as st

from headgate.watcher.sources.manifests.objects import UID_NAMESPACE, uid_of


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_uid_is_the_uuid_of_the_name(name: str) -> None:
    assert uid_of(name) == str(uuid.uuid5(UID_NAMESPACE, name))
