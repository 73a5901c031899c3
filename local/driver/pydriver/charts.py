# Copyright 2026 The Caddy Code Interpreter Authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

"""The data of a matplotlib figure, in the form of E2B's chart objects.

What a chart holds is found by looking at what was drawn. A figure that cannot
be read is no error: it has a picture anyway.
"""

import re
import sys

MAX_POINTS = 20_000  # of one figure; a larger one has only its picture

_UNIT = re.compile(r"\s\((.*?)\)|\[(.*?)\]")


class _TooLarge(Exception):
    pass


def extract(figure):
    """Returns the chart of a figure that has been drawn, or None."""
    try:
        axes = figure.get_axes()
        if not axes:
            return None
        budget = _Budget()
        if len(axes) == 1:
            return _chart(axes[0], budget)
        title = getattr(figure, "_suptitle", None)
        return {
            "type": "superchart",
            "title": (title.get_text() if title is not None else "") or None,
            "elements": [_chart(ax, budget) for ax in axes],
        }
    except Exception:
        return None


class _Budget:
    def __init__(self):
        self._left = MAX_POINTS

    def take(self, count):
        self._left -= count
        if self._left < 0:
            raise _TooLarge


def _chart(ax, budget):
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import PathPatch, Rectangle, Wedge

    drawn = [*ax.lines, *ax.patches, *ax.collections, *ax.images, *ax.tables, *ax.artists]
    plain = [item for item in drawn if not (isinstance(item, Line2D) and _is_guide(item))]

    def all_are(*kinds):
        return bool(plain) and all(isinstance(item, kinds) for item in plain)

    if ax.name == "3d":  # its lines have the coordinates of their projection
        return {"type": "unknown", "title": _title(ax), "elements": []}
    if all_are(PathPatch, Line2D) and _boxes(ax):
        return _box_and_whisker(ax)
    if all(isinstance(item, Line2D) for item in drawn):
        return _points(ax, "line", _lines(ax, budget))
    if all_are(PathCollection):
        return _points(ax, "scatter", _scatter(ax, budget))
    if all_are(Wedge):
        return {"type": "pie", "title": _title(ax), "elements": _wedges(ax)}
    if all_are(Rectangle) and ax.containers:
        return _bars(ax, budget)
    return {"type": "unknown", "title": _title(ax), "elements": []}


def _is_guide(line):
    """Whether a line spans the axes, as axhline and grid lines do."""
    x, y = list(line.get_xdata()), list(line.get_ydata())
    return len(x) == 2 and (_spans(x, y) or _spans(y, x))


def _spans(along, across):
    return list(along) == [0, 1] and across[0] == across[1]


def _title(ax):
    return ax.get_title() or None


def _flat(ax, kind, elements, swapped=False):
    """The part that all charts with two axes have."""
    x, y = ax.get_xlabel() or None, ax.get_ylabel() or None
    if swapped:
        x, y = y, x
    return {
        "type": kind,
        "title": _title(ax),
        "elements": elements,
        "x_label": x,
        "y_label": y,
        "x_unit": _unit(x),
        "y_unit": _unit(y),
    }


def _unit(label):
    found = _UNIT.search(label) if label else None
    return (found.group(1) or found.group(2)) if found else None


def _points(ax, kind, elements):
    chart = _flat(ax, kind, elements)
    for name, axis, scale in (("x", ax.xaxis, ax.get_xscale()), ("y", ax.yaxis, ax.get_yscale())):
        ticks = [float(tick) for tick in axis.get_ticklocs()]
        labels = [label.get_text() for label in axis.get_ticklabels()]
        if _has_dates(axis):
            scale, ticks = "datetime", [_date(tick) for tick in ticks]
        elif scale == "linear" and labels and _are_categories(ticks, labels):
            scale = "categorical"
        chart[name + "_ticks"] = ticks
        chart[name + "_tick_labels"] = labels
        chart[name + "_scale"] = scale
    return chart


def _has_dates(axis):
    get = getattr(axis, "get_converter", None)
    converter = get() if get else getattr(axis, "converter", None)
    kind = type(converter)
    return kind.__module__ == "matplotlib.dates" or "Date" in kind.__name__


def _date(tick):
    from matplotlib import dates

    return dates.num2date(tick).isoformat()


def _are_categories(ticks, labels):
    """Whether ticks count from zero and their labels say something else."""
    return all(tick == i and label != str(i) for i, (tick, label) in enumerate(zip(ticks, labels)))


def _value(value):
    """A coordinate: a number, or the text of a date or category."""
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    numpy = sys.modules["numpy"]
    if isinstance(value, numpy.datetime64):
        return str(value.astype("datetime64[s]"))
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return number if number - number == 0 else None


def _lines(ax, budget):
    elements = []
    for line in ax.get_lines():
        if _is_guide(line):
            continue
        x, y = line.get_xdata(), line.get_ydata()
        budget.take(len(x))
        elements.append(
            {
                "label": _numbered(line.get_label(), "_child", "Line"),
                "points": [[_value(a), _value(b)] for a, b in zip(x, y)],
            }
        )
    return elements


def _scatter(ax, budget):
    elements = []
    for collection in ax.collections:
        offsets = collection.get_offsets()
        budget.take(len(offsets))
        elements.append(
            {
                "label": _numbered(collection.get_label(), "_child", "Group"),
                "points": [[_value(a), _value(b)] for a, b in offsets],
            }
        )
    return elements


def _numbered(label, prefix, word):
    """A readable name in place of one that matplotlib made up."""
    label = str(label)
    if label.startswith(prefix) and label[len(prefix) :].isdigit():
        return "%s %s" % (word, label[len(prefix) :])
    return label


def _wedges(ax):
    from matplotlib.patches import Wedge

    return [
        {
            "label": str(wedge.get_label()),
            "angle": round(abs(float(wedge.theta2) - float(wedge.theta1)), 4),
            "radius": float(wedge.r),
        }
        for wedge in ax.patches
        if isinstance(wedge, Wedge)
    ]


def _round(number):
    return round(float(number), 6)


def _bars(ax, budget):
    elements, across = [], False
    for container in ax.containers:
        bars = list(container.patches)
        budget.take(len(bars))
        across = getattr(container, "orientation", "vertical") == "horizontal"
        axis = ax.yaxis if across else ax.xaxis
        names = dict(zip((_round(t) for t in axis.get_ticklocs()), axis.get_ticklabels()))
        group = _numbered(container.get_label(), "_container", "Group")
        for bar in bars:
            if across:
                middle, value = bar.get_y() + bar.get_height() / 2, bar.get_width()
            else:
                middle, value = bar.get_x() + bar.get_width() / 2, bar.get_height()
            name = names.get(_round(middle))
            label = name.get_text() if name is not None else "%g" % middle
            elements.append({"label": label, "group": group, "value": _value(value)})
    return _flat(ax, "bar", elements, across)


def _boxes(ax):
    """The boxes of a box plot as (x values, y values)."""
    found = []
    for patch in ax.patches:
        vertices = patch.get_path().vertices
        found.append((vertices[:, 0], vertices[:, 1]))
    if not found:
        for line in ax.lines:
            x, y = line.get_xdata(), line.get_ydata()
            if len(x) in (5, 11) and x[0] == x[-1] and y[0] == y[-1] and len(set(x)) > 1:
                found.append((x, y))
    return found


def _box_and_whisker(ax):
    boxes = [[_round(v) for v in (min(x), max(x), min(y), max(y))] for x, y in _boxes(ax)]
    # Boxes that stand side by side overlap in no place of the axis they stand on.
    across = len({(box[2], box[3]) for box in boxes}) == len(boxes) and _stacked(boxes)
    lines = [
        ([_round(v) for v in line.get_xdata()], [_round(v) for v in line.get_ydata()])
        for line in ax.lines
    ]
    axis = ax.yaxis if across else ax.xaxis
    if across:
        boxes = [[box[2], box[3], box[0], box[1]] for box in boxes]
        lines = [(y, x) for x, y in lines]
    names = dict(zip((_round(t) for t in axis.get_ticklocs()), axis.get_ticklabels()))
    elements = []
    for left, right, low, high in boxes:
        name = names.get(_round((left + right) / 2))
        label = name.get_text() if name is not None else str(len(elements) + 1)
        inside = [line for line in lines if line[0] and left <= min(line[0]) and max(line[0]) <= right]
        elements.append(_box(label, low, high, inside))
    return _flat(ax, "box_and_whisker", elements, across)


def _stacked(boxes):
    spans = sorted((box[2], box[3]) for box in boxes)
    apart = all(first[1] < second[0] for first, second in zip(spans, spans[1:]))
    if len(boxes) > 1:
        columns = sorted((box[0], box[1]) for box in boxes)
        beside = all(first[1] < second[0] for first, second in zip(columns, columns[1:]))
        return apart and not beside
    return False


def _box(label, low, high, lines):
    """The numbers of one box, read off the lines within its width."""
    median, least, most, outliers = None, low, high, []
    for place, values in lines:
        if len(values) == 2 and len(set(place)) == 1 and len(set(values)) == 2:
            least, most = min(least, *values), max(most, *values)  # a whisker
        elif len(values) == 2 and values[0] == values[1] and low <= values[0] <= high:
            median = values[0]
    for place, values in lines:
        if len(set(place)) == 1:
            outliers.extend(value for value in values if value < least or value > most)
    return {
        "label": label,
        "min": least,
        "first_quartile": low,
        "median": low if median is None else median,
        "third_quartile": high,
        "max": most,
        "outliers": outliers,
    }
