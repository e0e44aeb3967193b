"""The command line: a file in, a certified model, a readable report and predictions out.

Exit codes: 0, 1 if the accuracy asked for was not reached, 2 for a mistake of the user, 130 after Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from threading import current_thread, main_thread

from widemargin import __version__

#: The commands, each a module of this package with `add(parser)` and `run(options) -> exit code`.
COMMANDS = {
    "train": "train a classifier on a data file and prove how good it is",
    "predict": "say the class of every row",
    "evaluate": "hold a model's predictions against the labels of a data file",
    "certify": "prove again, from the files alone, how close a model is to the optimum",
    "info": "what is in a data file, a store or a model",
    "convert": "turn a data file into another format, or into a store for data beyond memory",
    "demo": "the lecture notes' problem at some C, as a table and a picture",
    "report": "a page with evaluation, proof and pictures of a model",
    "explore": "a page to play with, in the browser",
}
REACHED, SHORT, MISTAKE, INTERRUPTED = 0, 1, 2, 130
#: What brings the packages that are imported only when they are used.
EXTRAS = {"rich": "cli", "safetensors": "cli", "matplotlib": "plots", "pyarrow": "tables"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; its exit code."""
    if arguments is None:  # this is the command: BLAS's threads would spin on the cores that our own need
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        with handled(_interrupt, signal.SIGTERM), warnings.catch_warnings():
            words = sys.argv[1:] if arguments is None else list(arguments)
            options, unknown = _parser(words[:1]).parse_known_args(words)
            if unknown:
                what = f"there is no {unknown[0]}" if unknown[0].startswith("-") else f"{unknown[0]} is one too many"
                return _say(f"{what}; see 'widemargin {options.command} --help'", MISTAKE)
            warnings.simplefilter("ignore", RuntimeWarning)  # of numbers on the way; what matters is in the proof
            code = int(options.run(options))
        sys.stdout.flush()  # while a pipe that is closed can still be told from a mistake
        return code
    except BrokenPipeError:  # the reader of our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return REACHED
    except KeyboardInterrupt:
        return _say("interrupted; nothing was written", INTERRUPTED)
    except ImportError as error:
        package = (error.name or "").split(".")[0]
        if package == "widemargin":
            raise
        extra = EXTRAS.get(package)
        return _say(f"this needs {package}; pip install 'widemargin[{extra}]'" if extra else str(error), MISTAKE)
    except OSError as error:
        from widemargin.data.errors import because

        what, advice = because(error)
        return _say(f"{error.filename}: {what}; {advice}" if error.filename else f"{what}; {advice}", MISTAKE)
    except (ValueError, MemoryError) as error:  # all of ours say what, where and what to do
        from widemargin.cli.text import in_options

        memory = "not enough memory; convert the data to a store and train on that"
        return _say(in_options(str(error)) if isinstance(error, ValueError) else memory, MISTAKE)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@contextmanager
def handled(handler: Callable[..., None], *signals: signal.Signals) -> Iterator[None]:
    """These signals go to the handler, unless they are ignored, or this is not the main thread."""
    own = [one for one in signals if signal.getsignal(one) not in (signal.SIG_IGN, None)]
    before = {one: signal.signal(one, handler) for one in own} if current_thread() is main_thread() else {}
    try:
        yield
    finally:
        for one, other in before.items():
            signal.signal(one, other)


def _say(what: str, code: int) -> int:
    line = " ".join(str(what).split())
    print(f"widemargin: {line}", file=sys.stderr)
    return code


class _Parser(argparse.ArgumentParser):
    """One line for a mistake, as everywhere."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(MISTAKE, f"widemargin: {message}; see '{self.prog} --help'\n")


def _parser(asked: list[str]) -> argparse.ArgumentParser:
    """What reads the options of the command that is asked for; of all commands, if it is none of them."""
    parser = _Parser(
        prog="widemargin",
        description="Linear classifiers trained to the optimum, each with its proof.",
        epilog="'widemargin COMMAND --help' has examples.",
    )
    parser.add_argument("--version", action="version", version=f"widemargin {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name in [name for name in asked if name in COMMANDS] or COMMANDS:
        summary = COMMANDS[name]
        module = import_module(f"widemargin.cli.{name}")
        command = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog="\n".join(_indented(line) for line in (module.__doc__ or "").splitlines()),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add(command)
        command.set_defaults(run=module.run)
    return parser


def _indented(line: str) -> str:
    """An example stands out."""
    return f"  {line}" if " | " in line or line.startswith("widemargin ") else line
