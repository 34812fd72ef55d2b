"""Presented names: which certificate clients see for each server name."""

from collections.abc import Collection

from headgate.translator.fragments.fragment import CertificateRef


class PresentedNames:
    """Server names and the certificates that won them."""

    def __init__(self) -> None:
        """Begin without names."""
        self._certificates: dict[str, CertificateRef] = {}
        self._names: dict[CertificateRef, set[str]] = {}

    def award(self, name: str, winner: CertificateRef | None) -> tuple[CertificateRef, ...]:
        """Give a name to a certificate, or to none; returns the certificates whose names have changed."""
        before = self._certificates.get(name)
        if winner == before:
            return ()
        if before is not None:
            del self._certificates[name]
            self._names[before].discard(name)
            if not self._names[before]:
                del self._names[before]
        if winner is not None:
            self._certificates[name] = winner
            self._names.setdefault(winner, set()).add(name)
        return tuple(each for each in (before, winner) if each is not None)

    def of(self, certificate: CertificateRef) -> Collection[str]:
        """Return the names that a certificate has won."""
        return self._names.get(certificate, ())

    def certificate_of(self, name: str) -> CertificateRef | None:
        """Return the certificate that is presented for a name."""
        return self._certificates.get(name)
