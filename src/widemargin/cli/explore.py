"""examples:
widemargin explore
widemargin explore --port 8000 --no-browser
"""  # the end of --help

from __future__ import annotations

import argparse


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--port", type=int, default=0, help="any that is free if not said")
    parser.add_argument(
        "--token",
        help="the secret in the address, at least 16 letters, digits, - or _; random if not said. With the port and "
        "the token of before, open pages go on and shared links work again",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address, open nothing")


def run(options: argparse.Namespace) -> int:
    """Serves the page until Ctrl-C."""
    from widemargin.explorer import serve

    try:
        serve(port=options.port, open_browser=not options.no_browser, token=options.token)
    except OSError as error:  # of a port, not of a file
        raise ValueError(error.strerror or str(error)) from error
    return 0
