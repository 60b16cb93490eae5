"""The form of a model's answer. Whether what it says is true is checked elsewhere.

Lengths are cut later and never refused: providers disagree on which limits of a schema they keep.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

MOST_ITEMS = 200  # of a list; the schemas ask for far fewer, and each is looked up in the text
T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True)
class AnswerForm(Generic[T]):
    """The answers to all steps of a service as one struct, in which what was not asked for has its default.

    `must_say` names the texts that may not be empty.
    """

    kind: type[T]
    must_say: frozenset[str]

    def read(self, data: dict[str, Any]) -> T:
        """The answer; fields of another form than they should have are left out, endless lists are cut short."""
        fields = {name: value[:MOST_ITEMS] if isinstance(value, list) else value for name, value in data.items()}
        return msgspec.convert(
            {name: value for name, value in fields.items() if not self._problem(name, value)}, self.kind
        )

    def problems(self, data: object, names: Iterable[str]) -> list[str]:
        """Everything that is wrong with the form of an answer that was to have these fields, for the model to mend."""
        if not isinstance(data, dict):
            return [f"expected an object with the fields {', '.join(names)}"]
        names = list(names)
        found = [f"the field {name!r} is missing" for name in names if name not in data]
        return found + [problem for name in names if name in data and (problem := self._problem(name, data[name]))]

    def says(self, data: object, name: str) -> bool:
        """Whether an object has this field, and it is in order."""
        return isinstance(data, dict) and name in data and self._problem(name, data[name]) is None

    def _problem(self, name: str, value: Any) -> str | None:
        try:
            msgspec.convert({name: value}, self.kind)
        except msgspec.ValidationError as error:
            return str(error).replace("$.", "")
        return f"the field {name!r} is empty" if name in self.must_say and not str(value).strip() else None
