"""EXPLORER: a local page on which points are dragged and the margin follows.

The server listens on this machine alone and answers nobody who does not know the token in its address; the page is
plain JavaScript and SVG in `page/`. `reading` judges what a request says, `models` knows what can be chosen, `fitting`
and `playing` answer, `server` is the door.
"""

from widemargin.explorer.server import serve

__all__ = ["serve"]
