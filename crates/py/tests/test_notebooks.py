"""The notebooks run to their end, each in a kernel of its own, and the plot of README.md has today's numbers."""

import importlib.util
import re
from pathlib import Path

import matplotlib
import nbformat
import pytest
from matplotlib import style
from nbclient import NotebookClient

PACKAGE = Path(__file__).parents[1]
NOTEBOOKS = sorted((PACKAGE / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert [path.stem for path in NOTEBOOKS] == ["acks", "controller", "figure-1", "sweep"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_plots(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    # Outputs in the repository would be those of some earlier version.
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    assert "assert " in code[-1].source
    # A cell that raises raises here, with its traceback.
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in code for output in cell.outputs]
    plots = [output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    # An empty plot has less than 10 kB.
    assert [len(plot) > 15_000 for plot in plots] == [True]
    assert not [output for output in outputs if output.get("name") == "stderr"]


def test_figure_1_takes_twenty_lines():
    notebook = nbformat.read(PACKAGE / "notebooks" / "figure-1.ipynb", as_version=4)
    *measured_and_plotted, _checks = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    statements = [line for source in measured_and_plotted for line in source.splitlines() if line.strip()]
    assert len(statements) <= 20


def test_the_style_is_legible_in_print():
    with matplotlib.rc_context():
        style.use("tack.print")
        texts = ["font.size", "axes.labelsize", "axes.titlesize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize"]
        assert all(float(matplotlib.rcParams[name]) >= 8 for name in texts)
        assert matplotlib.rcParams["savefig.dpi"] == 300
        cycle = matplotlib.rcParams["axes.prop_cycle"].by_key()
        for without_colour in ("linestyle", "marker"):
            assert len(set(map(str, cycle[without_colour]))) == len(cycle["color"]) == 6


def test_the_plot_of_the_readme_is_what_its_script_makes(tmp_path):
    spec = importlib.util.spec_from_file_location("wifi", PACKAGE / "examples/wifi.py")
    wifi = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(wifi)
    with matplotlib.rc_context():
        wifi.plot(wifi.goodputs(), tmp_path / "wifi.svg")
    numbers = [re.search("tack: [^<]*", path.read_text()) for path in (tmp_path / "wifi.svg", PACKAGE.parents[1] / "docs/wifi.svg")]
    # After a change of the simulator: python crates/py/examples/wifi.py docs/wifi.svg
    assert numbers[0].group() == numbers[1].group()
