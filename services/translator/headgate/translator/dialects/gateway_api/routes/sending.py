"""How requests of a rule are sent: how long they may take, when they are sent again, and how clients keep to a pod."""

from collections.abc import Iterator
from typing import Final

from headgate.common.problems import Problem
from headgate.common.table import Retries, Stickiness, Timeouts
from headgate.common.table.sending import LEAST_OF_BACKOFF, MAX_ATTEMPTS
from headgate.translator.dialects.gateway_api.models.route import RouteRule, RuleRetry, SessionPersistence
from headgate.translator.manifests.specs import warn

DEFAULT_COOKIE: Final = "headgate-session"
DEFAULT_HEADER: Final = "X-Headgate-Session"
_ON: Final = ("connect", "reset")


def timeouts_of(rule: RouteRule) -> Timeouts:
    """Return how long a request may take, all in all. 0 is no bound, as in Gateway API."""
    request = rule.timeouts.request if rule.timeouts is not None else None
    return Timeouts(request_s=request) if request else Timeouts()


def retries_of(rule: RouteRule, by_policy: Retries | None) -> Retries:
    """Return when a request is sent again, and how long one endpoint may take; a policy's word counts where the rule
    says nothing.
    """
    retries = _retries(rule.retry) if rule.retry is not None else by_policy or Retries()
    per_try = rule.timeouts.backend_request if rule.timeouts is not None else None
    return retries.model_copy(update={"per_try_s": per_try}) if per_try else retries


def _retries(written: RuleRetry) -> Retries:
    """Return what a rule says of retries. Connections that fail are in any case among their reasons.

    `backoff` is the least that is waited, and of ours half is by chance.
    """
    said: dict[str, object] = {"on": (*_ON, "status") if written.codes else _ON, "statuses": written.codes}
    if written.attempts is not None:
        said["attempts"] = min(written.attempts, MAX_ATTEMPTS)
    if written.backoff:
        said["backoff_s"] = written.backoff / LEAST_OF_BACKOFF
    return Retries.model_validate(said)


def stickiness_of(written: SessionPersistence | None) -> Stickiness | None:
    """Return how clients keep to a pod; None if they do not."""
    if written is None:
        return None
    lifetime = max(1, round(written.absolute_timeout)) if written.absolute_timeout else None
    if written.type == "Header":
        named = written.header.name if written.header is not None else written.session_name
        return Stickiness(header=named or DEFAULT_HEADER, lifetime_s=lifetime)
    cookie = written.cookie or written.cookie_config
    return Stickiness(
        cookie=cookie.name or written.session_name or DEFAULT_COOKIE,
        path=cookie.path,
        max_age_s=lifetime if cookie.lifetime_type == "Permanent" else None,
        lifetime_s=lifetime,
    )


def unfollowed(rule: RouteRule, field: str) -> Iterator[Problem]:
    """Yield warnings of what is not followed."""
    written, retry = rule.session_persistence, rule.retry
    if written is not None and written.idle_timeout:
        message = "sessions end after absoluteTimeout, if at all"
        yield warn("UnsupportedField", f"{field}.sessionPersistence.idleTimeout", message)
    if retry is not None and retry.attempts is not None and retry.attempts > MAX_ATTEMPTS:
        message = f"a request is sent again {MAX_ATTEMPTS} times at most"
        yield warn("UnsupportedValue", f"{field}.retry.attempts", message, str(retry.attempts))
