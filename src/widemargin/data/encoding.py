"""How the columns of a table become the columns of X: learnt from one file, applied to the next, kept in the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from widemargin.data.errors import DataError, printable, quote

#: A number is taken as it is, a boolean as 0 or 1, a category becomes one column of 0 and 1 for each of its values.
KINDS = ("number", "boolean", "category")
#: Above this share of non-zeros, X is dense.
DENSE_FROM = 0.3


@dataclass(frozen=True)
class Column:
    """An input column: its name, what it holds and, for a category, the sorted values."""

    name: str
    kind: str
    categories: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """The columns of X that it takes."""
        return len(self.categories) if self.kind == "category" else 1

    @property
    def names(self) -> tuple[str, ...]:
        """The names of those columns."""
        return tuple(f"{self.name}={value}" for value in self.categories) if self.kind == "category" else (self.name,)


@dataclass(frozen=True)
class Encoding:
    """The input columns in the order of X, the name and kind of the label, and whether the file had a line of names.

    Examples
    --------
    >>> from widemargin.data.encoding import Column, Encoding
    >>> Encoding((Column("size", "number"), Column("colour", "category", ("blue", "red"))), "y", "number").names
    ('size', 'colour=blue', 'colour=red')

    """

    columns: tuple[Column, ...]
    label: str | None = None
    label_kind: str = "number"
    header: bool = True

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of X's columns."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def is_sparse(self) -> bool:
        """Whether X is stored as CSR: by the columns alone, so that all files of one encoding are stored alike."""
        return len(self.columns) < DENSE_FROM * sum(column.width for column in self.columns)

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, lists and strings, for `from_json`."""
        return {
            "columns": [
                {"name": column.name, "kind": column.kind}
                | ({"categories": list(column.categories)} if column.kind == "category" else {})
                for column in self.columns
            ],
            "label": self.label,
            "label_kind": self.label_kind,
            "header": self.header,
        }

    @classmethod
    def from_json(cls, data: Any, *, source: str = "encoding") -> Encoding:
        """An encoding from `to_json`; anything else is refused, as it may come from anybody's file."""

        def need(condition: object, what: str) -> None:
            if not condition:
                raise DataError.at(source, f"the encoding {what}", "take one that to_json wrote")

        need(isinstance(data, Mapping), "is not an object")
        need(set(data) == {"columns", "label", "label_kind", "header"}, "has not the fields of one")
        need(isinstance(data["columns"], list | tuple) and data["columns"], "has no columns")
        need(data["label"] is None or isinstance(data["label"], str), "has a label that is no name")
        need(isinstance(data["label_kind"], str) and data["label_kind"] in KINDS, "has a label of no known kind")
        need(isinstance(data["header"], bool), "has a header that is not true or false")
        columns = []
        for item in data["columns"]:
            need(isinstance(item, Mapping), "has a column that is not an object")
            need(isinstance(item.get("name"), str), "has a column without a name")
            need(isinstance(item.get("kind"), str) and item["kind"] in KINDS, "has a column of no known kind")
            is_category = item["kind"] == "category"
            need(
                set(item) == {"name", "kind"} | ({"categories"} if is_category else set()), "has a column of odd fields"
            )
            values = item.get("categories", ())
            need(isinstance(values, list | tuple), "has categories that are no list")
            need(all(isinstance(value, str) for value in values), "has a category that is no text")
            need(not is_category or values, "has a column without categories")
            need(list(values) == sorted(set(values)), "has categories out of order")
            columns.append(Column(item["name"], item["kind"], tuple(values)))
        names = [column.name for column in columns]
        need(len(set(names)) == len(names), "names a column twice")
        need(data["label"] not in names, "has its label among the columns")
        return cls(tuple(columns), data["label"], data["label_kind"], data["header"])


def listed(names: Any, most: int = 8) -> str:
    """Names for a message, quoted, at most so many."""
    names = list(names)
    shown = ", ".join(map(quote, names[:most]))
    return shown if len(names) <= most else f"{shown} and {printable(str(len(names) - most))} more"
