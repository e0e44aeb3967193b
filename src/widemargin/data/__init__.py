"""ROWS: where X comes from and how solvers walk over it."""

from widemargin.data.dataset import DataError, Dataset
from widemargin.data.rows import Rows

__all__ = ["DataError", "Dataset", "Rows"]
