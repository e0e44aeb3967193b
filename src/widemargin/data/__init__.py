"""ROWS: where X comes from and how solvers walk over it.

`open`, `blocks` and `save` read and write data files of every format.
"""

from widemargin.data.dataset import Dataset
from widemargin.data.encoding import Column, Encoding
from widemargin.data.errors import DataError
from widemargin.data.files import blocks, open, save
from widemargin.data.rows import Rows

__all__ = ["Column", "DataError", "Dataset", "Encoding", "Rows", "blocks", "open", "save"]
