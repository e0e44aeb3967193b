"""ROWS: where X comes from and how solvers walk over it.

`open`, `blocks` and `save` read and write data files of every format.
"""

from typing import TYPE_CHECKING

from widemargin.data.dataset import Dataset
from widemargin.data.encoding import Column, Encoding
from widemargin.data.errors import DataError
from widemargin.data.files import blocks, open, save

if TYPE_CHECKING:
    from widemargin.data.rows import Rows

__all__ = ["Column", "DataError", "Dataset", "Encoding", "Rows", "blocks", "open", "save"]


def __getattr__(name: str) -> object:
    """Rows, when they are asked for: a file may be read before NumPy is there."""
    if name != "Rows":
        raise AttributeError(f"module 'widemargin.data' has no attribute {name!r}")
    from widemargin.data.rows import Rows

    return Rows


def __dir__() -> list[str]:
    return __all__
