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

"""matplotlib without a screen: figures become results.

plt.show() shows every open figure and closes it, and so does the end of a
cell. How many figures may be open, and how many a cell shows, is bounded: a
loop that opens figures without end must not take the memory of the sandbox.
"""

import sys

from . import display, hooks

MAX_OPEN = 60  # figures; matplotlib itself warns at 20
MAX_SHOWN = 60  # pictures of one cell

_state = {"shown": 0, "dropped": 0, "seen": []}


def install():
    """Sees to matplotlib and PIL as soon as they are imported."""
    for name, adapt in _ADAPT.items():
        hooks.after_import(name, adapt)


def bundle(figure):
    """The representations of a figure."""
    found = {"text/plain": repr(figure)}
    if _state["shown"] >= MAX_SHOWN:
        _state["dropped"] += 1
        return found
    _state["shown"] += 1
    _state["seen"].append(figure)
    if not figure.axes and not figure.lines:
        return found  # as matplotlib's inline backend does
    found["image/png"] = _png(figure)
    from . import charts

    chart = charts.extract(figure)
    if chart:
        found["e2b/chart"] = chart
    return found


def _png(figure):
    import io

    if figure.canvas is None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        FigureCanvasAgg(figure)
    out = io.BytesIO()
    figure.canvas.print_figure(
        out,
        format="png",
        dpi=figure.dpi,
        facecolor=figure.get_facecolor(),
        edgecolor=figure.get_edgecolor(),
        bbox_inches="tight",
    )
    return out.getvalue()


def show(*args, **kwargs):
    """plt.show(): shows the open figures, and closes them."""
    _show_open(set())


def flush():
    """Shows at the end of a cell what it left open and has not shown."""
    try:
        _show_open({id(figure) for figure in _state["seen"]})
        if _state["dropped"]:
            display.shell.note(
                "[%d more figures are not shown: a cell shows at most %d]"
                % (_state["dropped"], MAX_SHOWN)
            )
    finally:
        _state.update(shown=0, dropped=0, seen=[])


def _show_open(shown):
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    if helpers is None or not helpers.Gcf.figs:
        return
    try:
        for manager in list(helpers.Gcf.figs.values()):
            _show(manager.canvas.figure, shown)
    finally:
        helpers.Gcf.destroy_all()


def _show(figure, shown):
    if id(figure) in shown:
        return
    if _state["shown"] >= MAX_SHOWN:
        _state["dropped"] += 1
        return
    display.display(figure)


def _adapt_matplotlib(module):
    import os

    if not os.environ.get("MPLBACKEND"):
        module.rcParams["backend"] = "agg"


def _adapt_pyplot(module):
    module.show = show


def _adapt_figure(module):
    def show_one(self, warn=True):
        """Shows the figure in the output of the cell."""
        display.display(self)

    module.Figure.show = show_one


def _adapt_helpers(module):
    original = module.Gcf._set_new_active_manager.__func__

    def _set_new_active_manager(cls, manager):
        while len(cls.figs) >= MAX_OPEN:
            number, oldest = next(iter(cls.figs.items()))
            _show(oldest.canvas.figure, {id(figure) for figure in _state["seen"]})
            cls.destroy(number)
        original(cls, manager)

    module.Gcf._set_new_active_manager = classmethod(_set_new_active_manager)


def _adapt_pil(module):
    def show_image(self, title=None, **options):
        """Shows the image in the output of the cell."""
        display.display(self)

    module.Image.show = show_image


_ADAPT = {
    "PIL.Image": _adapt_pil,
    "matplotlib": _adapt_matplotlib,
    "matplotlib.pyplot": _adapt_pyplot,
    "matplotlib.figure": _adapt_figure,
    "matplotlib._pylab_helpers": _adapt_helpers,
}
