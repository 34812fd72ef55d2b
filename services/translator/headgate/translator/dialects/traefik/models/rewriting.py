"""Middlewares about paths and redirects."""

from pydantic import Field

from headgate.translator.manifests.models import Model, Text


class AddPrefix(Model):
    """Puts something before the path."""

    prefix: str = Field(default="", description="What is put before the path; it begins with a slash.")


class StripPrefix(Model):
    """Takes something away from the path's beginning."""

    prefixes: tuple[str, ...] = Field(default=(), description="Beginnings, of which the first that fits is taken away.")
    force_slash: bool | None = Field(default=None, description="Deprecated: the path always begins with a slash.")


class StripPrefixRegex(Model):
    """Takes something away from the path's beginning, by patterns."""

    regex: tuple[str, ...] = Field(default=(), description="Patterns, of which the first that fits is taken away.")


class ReplacePath(Model):
    """Another path."""

    path: str = Field(default="", description="The path.")


class Replacement(Model):
    """A pattern, and what stands in the place of what it takes."""

    regex: str = Field(default="", description="Pattern.")
    replacement: str = Field(default="", description="What stands in its place; $1 is its first group.")


class RedirectRegex(Replacement):
    """A redirect of URLs that a pattern takes."""

    permanent: bool = Field(default=False, description="Whether the redirect is permanent.")


class RedirectScheme(Model):
    """A redirect to another scheme."""

    scheme: str = Field(default="", description="The scheme.")
    port: Text = Field(default="", description="Port of the new URL; the scheme's own by default.")
    permanent: bool = Field(default=False, description="Whether the redirect is permanent.")


class EncodedCharacters(Model):
    """Encoded characters that paths may have."""

    allow_encoded_slash: bool = Field(default=False, description="%2F may be in a path.")
    allow_encoded_back_slash: bool = Field(default=False, description="%5C may be in a path.")
    allow_encoded_null_character: bool = Field(default=False, description="%00 may be in a path.")
    allow_encoded_semicolon: bool = Field(default=False, description="%3B may be in a path.")
    allow_encoded_percent: bool = Field(default=False, description="%25 may be in a path.")
    allow_encoded_question_mark: bool = Field(default=False, description="%3F may be in a path.")
    allow_encoded_hash: bool = Field(default=False, description="%23 may be in a path.")
