"""Selectors of labels, as kubectl takes them."""

import pytest

from headgate.translator.manifests.label_selectors import read_selector, selects

LABELS = {"team": "shop", "tier": "web", "empty": ""}


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "team=shop",
        "team==shop",
        "team = shop , tier=web",
        "tier!=test",
        "other!=test",
        "team in (shop, pay)",
        "team in (shop),tier notin (test)",
        "other notin (a)",
        "team",
        "!other",
        "empty=",
        "empty in ()",
    ],
)
def test_labels_that_a_selector_takes(text: str) -> None:
    assert selects(text, LABELS)


@pytest.mark.parametrize(
    "text",
    [
        "team=pay",
        "tier!=web",
        "team in (pay)",
        "team notin (shop)",
        "other",
        "!team",
        "other=",
        "team=shop,other",
        "x in (y)",
    ],
)
def test_labels_that_a_selector_leaves(text: str) -> None:
    assert not selects(text, LABELS)


@pytest.mark.parametrize("text", ["=a", "a=b=c", "a in b", "a in (b", "a,,b", "a in (b c)", "a b", "a=-b-", "!"])
def test_what_is_no_selector_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(ValueError, match=r"selector of labels|value of a label"):
        read_selector(text)
