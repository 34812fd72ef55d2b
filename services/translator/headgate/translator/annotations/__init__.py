"""The `headgate.dev/*` annotations: which there are, how they are read, and what they set in the table's vocabulary.

Tables say everything about each annotation (`on_ingress`, `on_service`); reading, messages and `docs/annotations.md`
follow from them.
"""

from headgate.translator.annotations.annotation import PREFIX, Annotation
from headgate.translator.annotations.on_ingress import INGRESS_ANNOTATIONS
from headgate.translator.annotations.on_service import SERVICE_ANNOTATIONS
from headgate.translator.annotations.reading import Reading, ours, read_annotations

__all__ = [
    "INGRESS_ANNOTATIONS",
    "PREFIX",
    "SERVICE_ANNOTATIONS",
    "Annotation",
    "Reading",
    "ours",
    "read_annotations",
]
