"""The code cells of the notebooks run, on small data, and the notebooks are stored without outputs."""

import ast
import contextlib
import io
import os
import sys
import unittest.mock

import attscope
import notebooks
from common import Case, main

try:
    import matplotlib

    matplotlib.use("agg")
except ImportError:  # the cells run without their charts

    class Chart(unittest.mock.MagicMock):
        """Stands for every object of matplotlib."""

        def subplots(self, rows=1, columns=1, squeeze=True, **_options):
            axes = [Chart() for _ in range(columns)]
            return Chart(), axes if squeeze else [axes]

    sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = chart = Chart()
    chart.pyplot = chart


def run_cell(source, values):
    """Runs a cell and returns its last expression's value, as a notebook shows it."""
    code = ast.parse(source)
    last = code.body.pop() if isinstance(code.body[-1], ast.Expr) else None
    exec(compile(code, "cell", "exec"), values)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), values) if last else None


class Notebooks(Case):
    @classmethod
    def setUpClass(cls):
        cls.parameters = notebooks.prepare()

    def test_they_are_stored_without_outputs(self):
        names = sorted(path.stem for path in notebooks.FOLDER.glob("*.ipynb"))
        self.assertEqual(names, sorted(self.parameters))
        for name in names:
            self.assertLess(os.path.getsize(notebooks.FOLDER / f"{name}.ipynb"), 20000)
            cells = notebooks.read(name)["cells"]
            self.assertEqual([cell["outputs"] for cell in cells if cell.get("outputs")], [], name)
            self.assertEqual([cell for cell in cells if cell.get("execution_count")], [], name)
            self.assertEqual(sum(map(notebooks.is_parameters, cells)), 1, name)

    def test_their_cells_run(self):
        pages, served = {}, True
        for name, parameters in self.parameters.items():
            values, printed = {}, io.StringIO()
            for cell in notebooks.read(name)["cells"]:
                if cell["cell_type"] != "code":
                    continue
                try:
                    with contextlib.redirect_stdout(printed):
                        shown = run_cell("".join(cell["source"]), values)
                except attscope.Error as error:
                    if "no web server" not in str(error):
                        raise
                    print(f"skipped: the last cell of {name}: {error}")
                    served, shown = False, None
                if notebooks.is_parameters(cell):
                    self.assertEqual(set(values) - {"__builtins__"}, set(parameters), name)
                    values.update(parameters)
                if isinstance(shown, (attscope.Report, attscope.Shown)):
                    pages[name] = pages.get(name, "") + shown._repr_html_()
            pages[name] = pages.get(name, "") + printed.getvalue()
        self.assertIn("<iframe srcdoc=", pages["measure-a-checkpoint"])
        self.assertEqual("/explore?token=" in pages["measure-a-checkpoint"], served)
        self.assertIn("Context Broadcasting", pages["compare-two-trainings"])
        self.assertRegex(pages["features-of-a-checkpoint"], r"chosen: C = .*, top-1 \d+\.\d %")
        self.assertRegex(pages["follow-a-run"], r"data/validation/ant/000\.png (ant|bee|cow|dog)")
        self.assertRegex(pages["follow-a-figure"], r"trained    spread of the heads within a layer: 0\.\d+")


if __name__ == "__main__":
    main()
