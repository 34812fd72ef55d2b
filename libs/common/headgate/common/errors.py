"""The errors of the shared library.

HeadgateError                    anything that we raise on purpose
├── SettingsError                settings that cannot be used; the message says which and what would be right
├── DecodeError                  bytes from the log or the store that are not what the contract says
├── SealingError                 a value that cannot be sealed or opened
├── NoAnswer                     no service answered a question on the bus, or none in time
└── StoreError                   the log or the snapshot store did not do what was asked
    ├── StoreUnavailable         not now: retry later, keep the last good state
    │   └── NotPermitted         the store does not allow it to our user, until somebody changes its rights
    ├── NotFound                 the store answered, and has no such thing
    ├── Conflict                 a compare-and-set lost: somebody wrote in between
    │   └── HistoryBroken        the store may have lost what it confirmed: only a greater epoch may follow
    ├── TooLarge                 one value is larger than the store takes; others are not concerned
    └── LogReset                 the log was lost or recreated: rebuild from its beginning

Errors of third-party libraries are wrapped where they enter and stay chained as `__cause__`.
"""


class HeadgateError(Exception):
    """Base of all errors that Headgate raises on purpose."""


class SettingsError(HeadgateError):
    """Settings that cannot be used."""


class DecodeError(HeadgateError):
    """Bytes that do not follow the contract."""


class SealingError(HeadgateError):
    """A value that cannot be sealed or opened."""


class NoAnswer(HeadgateError):
    """No service answered a question on the bus in time."""


class StoreError(HeadgateError):
    """The log or the snapshot store did not do what was asked."""


class StoreUnavailable(StoreError):
    """The store cannot be reached now; the last good state stays in force."""


class NotPermitted(StoreUnavailable):
    """The store refuses this to our user: its administrator can mend it, and then trying again helps."""


class NotFound(StoreError):
    """The store answered that it has no such thing."""


class Conflict(StoreError):
    """A compare-and-set lost against another writer."""


class HistoryBroken(Conflict):
    """The store may have lost commits that it confirmed; a version of a greater epoch cannot be one of them."""


class TooLarge(StoreError):
    """One value is larger than the store takes: nothing but that value can mend it."""


class LogReset(StoreError):
    """The log was lost or recreated; sequences known so far mean nothing any more."""
