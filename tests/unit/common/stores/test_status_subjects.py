"""Subjects of statuses, and what boards keep of them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.common.errors import DecodeError
from headgate.common.resources import ObjectRef
from headgate.common.status import STATUS_PREFIX, StatusUpdate, parse_status_subject, status_subject

REF = ObjectRef("c1", "networking.k8s.io", "ingresses", "default", "web")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
_names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.builds(ObjectRef, _names, _names, _names, _names, _names), _names)
def test_a_subject_says_whose_status_it_is_and_in_which_table(ref: ObjectRef, table: str) -> None:
    assert parse_status_subject(status_subject(ref, table)) == (table, ref)


@pytest.mark.parametrize("subject", ["", "web", f"{STATUS_PREFIX}.c1.default.g.r.web", "other.status.c1.t.g.r.ns.web"])
def test_other_subjects_are_refused(subject: str) -> None:
    with pytest.raises(DecodeError):
        parse_status_subject(subject)


def update() -> StatusUpdate:
    return StatusUpdate(ref=REF, api_version="v1", kind="Ingress", uid="u", is_accepted=True, at=NOW)


def test_a_status_comes_back_as_it_was_encoded() -> None:
    assert StatusUpdate.decode(update().encode(), REF, "default") == update()


@pytest.mark.parametrize(("ref", "table"), [(REF, "theirs"), (REF._replace(name="other"), "default")])
def test_a_status_of_another_object_or_table_is_not_read(ref: ObjectRef, table: str) -> None:
    with pytest.raises(DecodeError, match="speaks of"):
        StatusUpdate.decode(update().encode(), ref, table)
