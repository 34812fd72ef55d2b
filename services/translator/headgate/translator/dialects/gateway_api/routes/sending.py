"""How requests of a rule are sent: how long they may take, when they are sent again, and how clients keep to a pod."""

from collections.abc import Iterator
from typing import Final

from headgate.common.problems import Problem
from headgate.common.table import Retries, Stickiness, Timeouts
from headgate.translator.dialects.gateway_api.models.route import RouteRule, RuleRetry, SessionPersistence
from headgate.translator.manifests.specs import warn

DEFAULT_COOKIE: Final = "headgate-session"
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
    """Return what a rule says of retries. Connections that fail are in any case among their reasons."""
    said: dict[str, object] = {"on": (*_ON, "status") if written.codes else _ON, "statuses": written.codes}
    if written.attempts is not None:
        said["attempts"] = written.attempts
    if written.backoff:
        said["backoff_s"] = written.backoff
    return Retries.model_validate(said)


def stickiness_of(written: SessionPersistence | None) -> Stickiness | None:
    """Return how clients keep to a pod; None if they do not."""
    if written is None or written.type != "Cookie":
        return None
    is_permanent = written.cookie_config.lifetime_type == "Permanent" and written.absolute_timeout
    age = int(written.absolute_timeout or 0) if is_permanent else None
    return Stickiness(cookie=written.session_name or DEFAULT_COOKIE, max_age_s=age)


def unfollowed(rule: RouteRule, field: str) -> Iterator[Problem]:
    """Yield warnings of what is not followed."""
    written, at = rule.session_persistence, f"{field}.sessionPersistence"
    if written is None:
        return
    if written.type != "Cookie":
        yield warn(
            "UnsupportedField", f"{at}.type", "sessions are kept by cookies; the rule is served without", "Header"
        )
    if written.idle_timeout:
        yield warn("UnsupportedField", f"{at}.idleTimeout", "cookies end after absoluteTimeout, if at all")
