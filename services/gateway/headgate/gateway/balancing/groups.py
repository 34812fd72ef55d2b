"""Where routes and groups find the current revision of a group of backends.

As with upstreams, a group that changes stores one attribute of one holder, whatever refers to it.
"""

from weakref import WeakValueDictionary

from headgate.common.table.backend_group import Nested, fault_of_nesting
from headgate.gateway.balancing.backends import BackendSet, SplitPicker
from headgate.gateway.balancing.sessions import backend_token


class GroupHolder:
    """Where the current revision of a group is found."""

    __slots__ = ("__weakref__", "_checked", "_fault", "_holders", "current", "fault_of_entry", "key", "nested", "token")

    def __init__(self, key: str, holders: "GroupHolders") -> None:
        self.key = key
        self.token = backend_token(f"group {key}")
        """What names it in cookies."""
        self._holders = holders
        self._checked = -1
        self._fault = ""
        self.nested: Nested | None = None
        """What it consists of; None: it is not in the table."""
        self.fault_of_entry = ""
        """Why the entry cannot be compiled."""
        self.current = self._refusing()

    def _refusing(self) -> BackendSet:
        return BackendSet(self.key, SplitPicker(()), find_fault=self.fault)

    def replace(self, current: BackendSet | None, nested: Nested | None, fault: str = "") -> None:
        """Take the revision that is served from now on; without one all requests are refused."""
        self.current = self._refusing() if current is None else current
        self.nested, self.fault_of_entry = nested, fault
        self._holders.note_change()

    def fault(self) -> str:
        """Say why all requests are refused; empty: they are not. Looked up again after each change of any group."""
        if self._checked != self._holders.changes:
            self._checked = self._holders.changes
            self._fault = self._find_fault()
        return self._fault

    def _find_fault(self) -> str:
        if self.nested is None:
            return f"backend group {self.key} is not in the table"
        fault = self.fault_of_entry or fault_of_nesting(self.key, self._holders.nested)
        return f"backend group {self.key} {fault}" if fault else ""

    @property
    def has_healthy(self) -> bool:
        """Whether a backend has a healthy endpoint."""
        return self.current.has_healthy

    @property
    def unavailable(self) -> str:
        """Why it has no endpoint; empty if it has."""
        return self.current.unavailable


class GroupHolders:
    """One holder for each key of a group that anything refers to; collected with the last of them."""

    def __init__(self) -> None:
        self._holders: WeakValueDictionary[str, GroupHolder] = WeakValueDictionary()
        self.changes = 0
        """Of any group so far."""

    def holder(self, key: str) -> GroupHolder:
        """Return the holder of a key, making an empty one on first use."""
        holder = self._holders.get(key)
        if holder is None:
            holder = self._holders[key] = GroupHolder(key, self)
        return holder

    def nested(self, key: str) -> Nested | None:
        """Return what a group consists of; None if it is not in the table."""
        holder = self._holders.get(key)
        return holder.nested if holder is not None else None

    def note_change(self) -> None:
        """Have all groups look again whether they are well."""
        self.changes += 1
