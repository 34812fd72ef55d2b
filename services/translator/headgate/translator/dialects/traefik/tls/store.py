"""TLSStores as certificates: for names that no other has, and further ones for the names that they are valid for.

Traefik uses the store named `default` alone, and so do gateways here.
"""

from collections.abc import Iterator

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.table import OTHER_NAMES
from headgate.translator.dialects.traefik.models.tls import TlsStoreSpec
from headgate.translator.dialects.traefik.tls.certificates import claim_valid_names, usable_certificate
from headgate.translator.dialects.traefik.tls.options import DEFAULT
from headgate.translator.fragments.fragment import CertificateRef, Fragment, NameClaim
from headgate.translator.manifests.specs import Spec, warn
from headgate.translator.objects.document import identify
from headgate.translator.world.graph import Lookups


def translate_tls_store(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return the certificates of a TLSStore. One that cannot be used costs none of the others."""
    problems: list[Problem] = []
    written = manifest.get("spec")
    spec = Spec({} if written is None else written, problems).rest(TlsStoreSpec)
    if ref.name != DEFAULT:
        message = f"only the TLSStore named {DEFAULT} is used; its certificates serve every name that they are for"
        problems.append(warn("NotUsed", "metadata.name", message, ref.name))
    elif spec is not None:
        names = tuple(_claims(ref, spec, lookups, problems))
        return Fragment(identify(ref, manifest), names=names, problems=tuple(problems))
    return Fragment(identify(ref, manifest), problems=tuple(problems))


def _claims(ref: ObjectRef, spec: TlsStoreSpec, lookups: Lookups, problems: list[Problem]) -> Iterator[NameClaim]:
    if spec.default_certificate is not None:
        field, name = "spec.defaultCertificate.secretName", spec.default_certificate.secret_name
        if usable_certificate(ref.namespace, name, field, lookups, problems) is not None:
            yield NameClaim(OTHER_NAMES, CertificateRef(ref.cluster, ref.namespace, name), field)
    elif spec.default_generated_cert is not None:
        message = "no certificates are asked for: name a Secret as defaultCertificate, which cert-manager may keep"
        problems.append(
            warn("UnsupportedField", "spec.defaultGeneratedCert", message, spec.default_generated_cert.resolver)
        )
    for index, certificate in enumerate(spec.certificates):
        field = f"spec.certificates[{index}].secretName"
        yield from claim_valid_names(ref, certificate.secret_name, field, lookups, problems)
