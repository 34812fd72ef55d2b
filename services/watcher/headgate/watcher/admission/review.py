"""AdmissionReview of `admission.k8s.io/v1`, as far as it is read and written here.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#request
"""

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from headgate.common.resources import JsonObject
from headgate.watcher.errors import WatcherError

API_VERSION = "admission.k8s.io/v1"


class ReviewError(WatcherError):
    """What was sent is no AdmissionReview that can be answered."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel)


class ReviewedResource(_Part):
    """Which resource is meant, in the version in which the object is sent."""

    group: str = ""
    version: str
    resource: str

    @property
    def api_version(self) -> str:
        """As in objects: `networking.k8s.io/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version


class ReviewedUser(_Part):
    """Who asks."""

    username: str = ""


class AdmissionRequest(_Part):
    """What somebody wants to do to an object."""

    uid: str
    resource: ReviewedResource
    sub_resource: str | None = None
    name: str | None = None
    namespace: str | None = None
    operation: str
    """`CREATE`, `UPDATE`, `DELETE` or `CONNECT`."""
    object: JsonObject | None = None
    """As it would be; None for deletions."""
    old_object: JsonObject | None = None
    """As it is; None if it does not exist yet."""
    dry_run: bool | None = None
    user_info: ReviewedUser = ReviewedUser()


class _Review(_Part):
    api_version: str
    request: AdmissionRequest


def parse_review(body: bytes) -> AdmissionRequest:
    """Read an AdmissionReview.

    Raises:
        ReviewError: it is none, or one of another version; says what is wrong.
    """
    try:
        review = _Review.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ReviewError(f"not an AdmissionReview: {where}: {first['msg']}" if where else first["msg"]) from error
    if review.api_version != API_VERSION:
        raise ReviewError(f"apiVersion must be {API_VERSION}, but is {review.api_version[:80]}")
    return review.request


class Refusal(_Part):
    """The message for a user who is refused."""

    code: int
    """HTTP status: 422 for an object that cannot be accepted, 503 for one that cannot be judged now."""
    reason: str
    """As in Kubernetes' Status objects."""
    message: str


def make_answer(uid: str, refusal: Refusal | None, warnings: tuple[str, ...]) -> JsonObject:
    """Return the AdmissionReview that answers a request."""
    response: JsonObject = {"uid": uid, "allowed": refusal is None}
    if refusal is not None:
        response["status"] = {"status": "Failure", **refusal.model_dump()}
    if warnings:
        response["warnings"] = list(warnings)
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
