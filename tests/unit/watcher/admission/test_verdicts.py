"""What the API server is told."""

from headgate.common.admission import Basis, Finding, Opinion, Outcome
from headgate.common.problems import Problem, Severity
from headgate.watcher.admission.review import make_answer
from headgate.watcher.admission.verdict import (
    MAX_FAULTS,
    MAX_LINE,
    AdmissionPolicy,
    AdmissionVerdict,
    give_up,
    give_verdict,
)

LENIENT, STRICT = AdmissionPolicy("ignore", "warn"), AdmissionPolicy("fail", "deny")
WHAT = "Ingress shop/web"


def finding(
    text: str = "must be a DNS name",
    *,
    basis: Basis = Basis.OWN,
    severity: Severity = Severity.ERROR,
    is_new: bool = True,
) -> Finding:
    problem = Problem(severity=severity, reason="InvalidHost", field="spec.rules[0].host", message=text)
    return Finding(problem=problem, basis=basis, is_new=is_new)


def verdict(*findings: Finding, policy: AdmissionPolicy = LENIENT, omitted: int = 0) -> AdmissionVerdict:
    return give_verdict(WHAT, Opinion(outcome=Outcome.JUDGED, findings=findings, omitted=omitted), policy)


def test_an_error_is_refused_with_object_field_and_remedy() -> None:
    refusal = verdict(finding()).refusal
    assert refusal is not None
    assert (refusal.code, refusal.reason) == (422, "Invalid")
    assert refusal.message == "Ingress shop/web: spec.rules[0].host: must be a DNS name [InvalidHost]"


def test_every_fault_has_a_line() -> None:
    refusal = verdict(finding("one"), finding("two", basis=Basis.CONFLICT)).refusal
    assert refusal is not None
    assert refusal.message.splitlines() == [
        "2 faults",
        "Ingress shop/web: spec.rules[0].host: one [InvalidHost]",
        "Ingress shop/web: spec.rules[0].host: two [InvalidHost]",
    ]


def test_the_number_and_the_length_of_lines_are_bounded() -> None:
    refusal = verdict(*[finding("x" * 5000)] * (MAX_FAULTS + 5), omitted=7).refusal
    assert refusal is not None
    lines = refusal.message.splitlines()
    assert lines[-1] == "and 12 more"
    assert len(lines) == MAX_FAULTS + 2
    assert max(map(len, lines)) == MAX_LINE


def test_what_users_wrote_cannot_add_lines() -> None:
    refusal = verdict(finding("a\nb\x00c\r\nd")).refusal
    assert refusal is not None
    assert "a b c d" in refusal.message


def test_warnings_let_the_object_in() -> None:
    found = verdict(finding("is ignored", severity=Severity.WARNING))
    assert found.refusal is None
    assert found.warnings == ("Ingress shop/web: spec.rules[0].host: is ignored [InvalidHost]",)


def test_an_error_that_was_there_before_is_a_warning() -> None:
    found = verdict(finding(is_new=False))
    assert found.refusal is None
    assert found.warnings == ("Ingress shop/web: as before: spec.rules[0].host: must be a DNS name [InvalidHost]",)


def test_a_missing_reference_is_refused_only_where_the_settings_say_so() -> None:
    missing = finding("Service shop/web not found", basis=Basis.REFERENCE)
    assert verdict(missing).refusal is None
    assert verdict(missing).warnings
    assert verdict(missing, policy=STRICT).refusal is not None


def test_warnings_stay_within_the_limits_of_the_api() -> None:
    found = verdict(*[finding("é" * 5000 + "\n", severity=Severity.WARNING)] * 40, omitted=3)
    assert max(map(len, found.warnings)) <= 256
    assert sum(map(len, found.warnings)) <= 4096
    assert found.warnings[-1] == "Ingress shop/web: and 28 more"
    assert all(text.isprintable() for text in found.warnings)


def test_an_object_that_nobody_judged_is_let_in_with_a_warning_or_refused_for_now() -> None:
    assert give_up(WHAT, "no translator listens", LENIENT) == AdmissionVerdict(
        warnings=("Ingress shop/web was not checked by Headgate: no translator listens",)
    )
    refusal = give_up(WHAT, "no translator listens", STRICT).refusal
    assert refusal is not None
    assert (refusal.code, refusal.reason) == (503, "ServiceUnavailable")
    assert "no translator listens; try again later" in refusal.message


def test_an_answer_has_the_shape_of_the_api() -> None:
    refused = make_answer("u1", verdict(finding()).refusal, ())
    assert refused == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": "u1",
            "allowed": False,
            "status": {
                "status": "Failure",
                "code": 422,
                "reason": "Invalid",
                "message": "Ingress shop/web: spec.rules[0].host: must be a DNS name [InvalidHost]",
            },
        },
    }
    assert make_answer("u2", None, ("w",))["response"] == {"uid": "u2", "allowed": True, "warnings": ["w"]}
