"""The look of every picture, in one place: colours, marks, lines, names, frames and legends.

The colours are those of Okabe and Ito, told apart by every kind of eye; what matters differs in shape or dashes as
well, so that a print in grey still tells it. Greys are numbers from 0, the ink, to 1, the paper; `inked` makes colours
of them for the paper and the ink that matplotlib is set to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from widemargin.data.labels import text_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Look = dict[str, Any]

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
#: For classes beyond the sixth.
MORE_COLOURS = ("#999933", "#882255", "#44AA99", "#AA7744")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 3)))
SIZE = (6.4, 5.2)

INK, PAPER = 0.0, 1.0

# Points, by class and by what is to be said of them.
CLASSES: list[Look] = [{"color": COLOURS[1], "marker": "s", "lw": 0}, {"color": COLOURS[0], "marker": "o", "lw": 0}]
ON_MARGIN: Look = {"facecolor": "none", "edgecolor": INK, "lw": 1.0, "marker": "o"}
INSIDE_SUPPORT: Look = {"facecolor": "none", "edgecolor": INK, "lw": 0.9, "marker": "o", "linestyle": (0, (1.5, 1))}
WRONG_SUPPORT: Look = {"facecolor": "none", "edgecolor": INK, "lw": 0.9, "marker": "s"}
INSIDE: Look = {"facecolor": PAPER, "edgecolor": INK, "lw": 0.6, "marker": "o"}
MISCLASSIFIED: Look = {"color": INK, "lw": 1.1, "marker": "x"}
BEYOND: Look = {"color": INK, "lw": 0, "zorder": 4}
NEAREST: Look = {"facecolor": "none", "edgecolor": INK, "lw": 1.2, "marker": "D", "zorder": 4}
COMMON: Look = {"color": INK, "marker": "*", "lw": 0, "zorder": 4}

# Lines and areas.
SLACK: Look = {"colors": 0.35, "linewidths": 0.7, "zorder": 0.9}
SEPARATOR: Look = {"color": INK, "lw": 1.5}
EDGE: Look = {"color": INK, "lw": 0.8, "ls": "--"}
BAND: Look = {"color": 0.93, "zorder": 0}
REFERENCE: Look = {"color": 0.5, "lw": 1.0, "ls": ":", "zorder": 0.5}
RUNS: list[Look] = [{"color": color, "marker": marker} for color, marker in zip(COLOURS, "osD^vP", strict=True)]

#: Beyond so many marks a picture for print keeps them as pixels: files stay small.
RASTER = 1_000
#: Marks and legends are smaller on axes or figures of fewer points across.
WIDE_AXES, WIDE_FIGURE = 350, 300
#: What ticks and their label take under axes, and the space around a legend, in points.
UNDER_AXES, AROUND_LEGEND = 37, 9
#: In a group of fewer places none is an outlier.
SMALL_GROUP = 8
#: A name of more letters is cut in the middle.
LONGEST_NAME = 28


def pyplot() -> ModuleType:
    """matplotlib.pyplot, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'widemargin[plots]'") from None
    return plt


def inked(look: Look) -> Look:
    """The look with its greys between the ink and the paper of the style in use."""
    return {key: grey(value) if "color" in key and isinstance(value, float) else value for key, value in look.items()}


def grey(light: float) -> tuple[float, ...]:
    """A colour between the ink, 0, and the paper, 1, of the style in use."""
    from matplotlib import rcParams
    from matplotlib.colors import to_rgb

    paper = rcParams["figure.facecolor" if rcParams["axes.facecolor"] == "none" else "axes.facecolor"]
    ends = zip(to_rgb(rcParams["text.color"]), to_rgb(paper), strict=True)
    return tuple((1 - light) * dark + light * bright for dark, bright in ends)


def name(of: object, longest: int = LONGEST_NAME) -> str:
    """A name from the data as it can stand in a picture: one line, not too long, and no formula by accident."""
    text = " ".join(text_of(of).split())
    if len(text) > longest:
        text = f"{text[: longest - 9].rstrip()}…{text[-8:].lstrip()}"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text  # matplotlib hides labels that begin with _


def class_look(k: int) -> Look:
    """The mark of the k-th class; beyond ten classes, colours come back with other shapes."""
    if k < len(CLASSES):
        return dict(CLASSES[k])
    colours, shapes = (*COLOURS, *MORE_COLOURS), "soD^vPX<>*"
    return {"color": colours[k % len(colours)], "marker": shapes[(k + k // len(colours)) % len(shapes)], "lw": 0}


def tint(color: str, share: float) -> tuple[float, ...]:
    """A colour thinned with the paper of the style in use, so that marks of this colour stand out from it."""
    from matplotlib.colors import to_rgb

    paper = grey(PAPER)
    share = share if sum(paper) > 1.5 else share**0.8  # on dark paper a little colour is not seen
    return tuple(share * c + (1 - share) * p for c, p in zip(to_rgb(color), paper, strict=True))


def class_label(of: object) -> str:
    """A class in a legend."""
    return f"class {name(of)}"


@dataclass(frozen=True)
class Display:
    """What a picture was drawn on."""

    ax_: Axes

    @property
    def figure_(self) -> Any:
        """The figure of the axes."""
        return self.ax_.figure

    @classmethod
    def _on(cls, ax: Axes | None) -> Self:
        """The axes given, or new ones, with the common look."""
        return cls(new_axes() if ax is None else plain(ax))

    def _explain(self, x: str, y: str) -> Self:
        """Name the axes, and put the legend below them, or inside where there is no room and none can be made."""
        self.ax_.set(xlabel=x, ylabel=y)
        thin_ticks(self.ax_)
        if self.figure_.get_layout_engine() is not None:
            legend_below(self.ax_)
        elif is_alone(self.ax_) and self.ax_.get_subplotspec() is not None:
            make_room_below(self.figure_, legend_below(self.ax_))
        else:
            legend_inside(self.ax_)
        return self


def new_axes() -> Axes:
    """Axes in a figure of their own."""
    return plain(pyplot().subplots(figsize=SIZE, layout="constrained")[1])


def plain(ax: Axes) -> Axes:
    """The axes without a box around them."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def point_size(count: int) -> float:
    """How large the mark of a point is, in square points, if there are so many."""
    return float(np.clip(6000 / max(count, 1), 3, 36))


def scatter(ax: Axes, places: Floats, size: float | Floats, **look: Any) -> None:
    """Marks at the places, as pixels if they are many, and smaller on small axes."""
    look.setdefault("rasterized", len(places) > RASTER)
    ax.scatter(places[:, 0], places[:, 1], s=size * mark_scale(ax), **inked(look))


def mark_scale(ax: Axes) -> float:
    """By how much marks are smaller on these axes than on wide ones."""
    return min(1.0, width_of(ax) / WIDE_AXES)


def thin_ticks(ax: Axes) -> None:
    """Fewer numbers below the axes where they would touch."""
    if ax.get_xscale() != "linear":
        return
    left, right = ax.get_xlim()
    ticks = [tick for tick in ax.get_xticks() if left <= tick <= right]
    longest = max(map(len, ax.xaxis.get_major_formatter().format_ticks(ticks)), default=0)
    room = int(0.85 * width_of(ax) / (8 + 6.4 * longest))
    if len(ticks) > room:
        ax.locator_params(axis="x", nbins=max(2, room - 1))


def width_of(ax: Axes) -> float:
    """The width of axes before they give way to labels, in points of print."""
    return float(ax.get_position(original=True).width) * points_across(ax.figure)


def points_across(figure: Any) -> float:
    """The width of a figure, in points of print."""
    return float(figure.bbox.width * 72 / figure.dpi)


def legend_inside(ax: Axes) -> None:
    """A legend where it covers the least."""
    handles, labels = ax.get_legend_handles_labels()
    if labels:
        size = "small" if width_of(ax) > WIDE_FIGURE else "x-small" if width_of(ax) > WIDE_FIGURE / 2 else "xx-small"
        bold(ax.legend(handles, labels, loc="best", fontsize=size, scatterpoints=1, handlelength=1.8))


def is_alone(ax: Axes) -> bool:
    """Whether no other axes are in the figure."""
    return len(ax.figure.axes) == 1


def legend_below(ax: Axes) -> Any:
    """A legend under the axes' own labels, where it covers nothing, in as many columns as there is room for."""
    handles, labels = ax.get_legend_handles_labels()
    if not labels:
        return None
    from matplotlib.transforms import blended_transform_factory

    alone = is_alone(ax)
    across = ax.figure.transSubfigure if alone else ax.transAxes
    width = points_across(ax.figure) if alone else width_of(ax)
    size, letter = ("small", 4.4) if width > WIDE_FIGURE else ("x-small", 3.65)
    legend = ax.legend(
        handles,
        labels,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=blended_transform_factory(across, ax.transAxes),
        borderaxespad=21 / letter,  # in letters' heights: below ticks and label, whatever the height of the axes
        ncols=columns_for(labels, width, letter),
        frameon=False,
        fontsize=size,
        scatterpoints=1,
        handlelength=1.8,
        columnspacing=1.4,
    )
    bold(legend)
    return legend


def bold(legend: Any) -> None:
    """Marks that are tiny or faint in the picture can be seen in the legend all the same; broad lines do not touch."""
    for handle in legend.legend_handles:
        if hasattr(handle, "get_xdata"):
            handle.set_linewidth(min(handle.get_linewidth(), 6.0))
        if hasattr(handle, "get_sizes"):
            least = 18 if len(handle.get_facecolor()) else 45  # rings are larger than the rows that they are around
            handle.set_sizes(np.clip(handle.get_sizes(), least, 70))
            handle.set_linewidth([max(one, 0.8) if one > 0 else 0 for one in handle.get_linewidth()])
            handle.set_alpha(None)


def columns_for(labels: Iterable[str], width: float, letter: float) -> int:
    """How many columns of such labels fit into so many points, at so many for a letter."""
    entry = letter * (7.7 + max(map(len, labels)))
    return int(np.clip(width // entry, 1, 4))


def share_legend(axes: Iterable[Axes], where: Any, **place: Any) -> None:
    """One legend for all panels: an entry for each label that any of them has.

    `where` is a figure or further axes, `place` goes to its ``legend``. If it says no place, the legend of a figure
    stands below the panels.
    """
    axes = list(axes)
    entries: Mapping[str, Any] = {
        label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    for ax in axes:
        if (own := ax.get_legend()) is not None:
            own.remove()
    below = hasattr(where, "get_layout_engine") and not {"loc", "bbox_to_anchor"} & place.keys()
    if below:
        place = {"loc": "outside lower center", "ncols": columns_for(entries, points_across(where), 4.4), **place}
    legend = where.legend(entries.values(), entries.keys(), **{"frameon": False, "fontsize": "small", **place})
    bold(legend)
    if below:
        make_room_below(where, legend)


def make_room_below(figure: Any, legend: Any) -> None:
    """Lift the panels of a figure by the height of a legend under them, unless the layout does it by itself."""
    if legend is None:
        return
    engine, point = figure.get_layout_engine(), figure.dpi / 72 / figure.bbox.height
    share = legend.get_window_extent().height / figure.bbox.height + AROUND_LEGEND * point
    if engine is None:
        space = figure.subplotpars
        figure.subplots_adjust(bottom=min(max(space.bottom, share + UNDER_AXES * point), space.top - 0.1))
    elif engine.adjust_compatible:
        engine.set(rect=(0, share, 1, 1))


def frame(*groups: Floats) -> tuple[Floats, Floats]:
    """The lower left and upper right corner of a view on groups of places.

    A few places that lie so far out that the others of their group would shrink to a dot are left out; a group that is
    small and far from the others is not.
    """
    lows, highs = [], []
    for places in groups:
        if not len(places):
            continue
        ordered = np.sort(places, axis=0)
        few = 0 if len(places) < SMALL_GROUP else max(1, len(places) // 50)
        near, far = ordered[few], ordered[-1 - few]
        reach = np.where(far > near, 1.5 * (far - near), np.inf)  # where hardly any differ, those that do count
        lows.append(np.where(ordered >= near - reach, ordered, np.inf).min(axis=0))
        highs.append(np.where(ordered <= far + reach, ordered, -np.inf).max(axis=0))
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    room = 0.08 * np.where(high > low, high - low, np.maximum(1.0, np.abs(high)))
    return low - room, high + room


def mark_beyond(ax: Axes, places: Floats) -> None:
    """Arrowheads on the frame for the places outside of it, and how many they are."""
    left, right = ax.get_xlim()
    bottom, top = ax.get_ylim()
    outside = places[(places[:, 0] < left) | (places[:, 0] > right) | (places[:, 1] < bottom) | (places[:, 1] > top)]
    label = f"beyond the frame ({len(outside):,})"
    inset = 0.012 * np.array([right - left, top - bottom])  # a whole arrowhead fits in
    x, y = outside.clip(np.array([left, bottom]) + inset, np.array([right, top]) - inset).T
    for marker, here in (
        ("<", outside[:, 0] < left),
        (">", outside[:, 0] > right),
        ("v", (outside[:, 1] < bottom) & (outside[:, 0] >= left) & (outside[:, 0] <= right)),
        ("^", (outside[:, 1] > top) & (outside[:, 0] >= left) & (outside[:, 0] <= right)),
    ):
        if here.any():
            ax.scatter(x[here], y[here], s=28, marker=marker, label=label, **inked(BEYOND))
            label = "_more beyond the frame"
