"""The documentation site: `sphinx-build -W notebooks OUT` from the folder of the repository.

Pages and notebooks stand here; those of the paper's experiments are copied in for the build.
Nothing is executed: notebooks show their committed outputs.  The build needs no network.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from docutils import nodes
from latex2mathml.converter import convert
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator

import lkm_gpflow as lkm
from lkm_gpflow.cli import main

HERE = Path(__file__).parent
EXPERIMENTS = HERE.parent / "paper_experiments"
SCRIPT_LETTERS = "𝒜ℬ𝒞𝒟ℰℱ𝒢ℋℐ𝒥𝒦ℒℳ𝒩𝒪𝒫𝒬ℛ𝒮𝒯𝒰𝒱𝒲𝒳𝒴𝒵"
COPIES = HERE / "paper_experiments"  # git-ignored, as is the next one, where autosummary writes
GENERATED = HERE / "reference" / "api"

project = "lkm_gpflow"
author = "The lkm_gpflow contributors"
copyright = author
version = release = installed_version("lkm_gpflow")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["ledgers", "figures", "**.ipynb_checkpoints", "README.md"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]

nb_execution_mode = "off"
nb_merge_streams = True
nitpicky = True
# Types of other libraries, which their own sites describe.
nitpick_ignore_regex = [
    (
        "py:.*",
        r"(abc|enum|collections|concurrent|contextlib|pathlib|types|typing|numpy|np|pandas|pd|scipy|sklearn|tensorflow|tf"
        r"|tensorflow_probability|tfp|gpflow|matplotlib|sktime|skbase|ipywidgets|dask|polars|pyarrow|xarray)"
        r"(\..*)?",
    ),
    (
        "py:.*",
        "Any|Axes|Callable|Executor|Iterator|Literal|Mapping|Path|Sequence|optional|ndarray"
        "|ArrayLike|MeanAndVariance|RegressionData|TensorType",
    ),
]
suppress_warnings = ["mystnb.unknown_mime_type"]  # scores for the runner, nothing to show
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3

# Docstrings call names of the package in single backticks, and modules by their last name.
default_role = "py:obj"
autosummary_generate = True
autosummary_filename_map = {  # file systems that do not tell upper from lower case
    "lkm_gpflow.Backtest": "lkm_gpflow.Backtest_class",
    "lkm_gpflow.comparators.Comparator": "lkm_gpflow.comparators.Comparator_class",
}
autodoc_typehints_format = "short"
maximum_signature_line_length = 80
autodoc_type_aliases = dict.fromkeys(("Floats", "Integers", "Booleans", "AxesArray"), "ndarray") | {
    name: name for name in ("ArrayLike", "MeanAndVariance", "RegressionData", "TensorType")
}
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False  # GPflow's are read at GPflow
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"  # names that fit beside the page
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

# Public modules that are called otherwise than their files.
for alias in ("expressions", "ibp", "metrics"):
    sys.modules[f"lkm_gpflow.{alias}"] = getattr(lkm, alias)

# Links to other libraries need their inventories, and those a network.
if os.environ.get("LKM_GPFLOW_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
        "matplotlib": ("https://matplotlib.org/stable", None),
        "gpflow": ("https://gpflow.github.io/GPflow/develop", None),
        "tensorflow_probability": (
            "https://www.tensorflow.org/probability/api_docs/python",
            "https://github.com/GPflow/tensorflow-intersphinx/raw/master/tfp_py_objects.inv",
        ),
    }

html_theme = "sphinx_book_theme"
html_title = "lkm_gpflow"
html_math_renderer = "mathml"
html_show_copyright = False
html_copy_source = False
html_theme_options = {
    "home_page_in_toc": False,
    "navbar_persistent": [],
    "use_download_button": True,
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# The workflow that publishes the site knows where the notebooks can be opened and run.
if repository := os.environ.get("GITHUB_REPOSITORY"):
    extensions.append("sphinx.ext.linkcode")
    html_theme_options |= {
        "repository_url": f"https://github.com/{repository}",
        "repository_branch": os.environ.get("GITHUB_REF_NAME", "main"),
        "use_repository_button": True,
        "launch_buttons": {
            "binderhub_url": "https://mybinder.org",
            "colab_url": "https://colab.research.google.com",
            "notebook_interface": "jupyterlab",
        },
    }


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Return where the source of a name can be read, once the repository is known."""
    named: Any = sys.modules.get(info["module"])
    try:
        for part in info["fullname"].split("."):
            named = inspect.unwrap(getattr(named, part))
        file = Path(inspect.getsourcefile(named) or "")
        lines, first = inspect.getsourcelines(named)
    except (AttributeError, OSError, TypeError):  # a value, or a property
        return None
    package = Path(lkm.__file__).parent
    if not file.is_relative_to(package):
        return None
    relative = file.relative_to(package.parent).as_posix()
    return source(f"{relative}#L{first}-L{first + len(lines) - 1}")


def source(place: str) -> str:
    """Return the address of a file of the repository."""
    branch = os.environ.get("GITHUB_REF_NAME", "main")
    return f"https://github.com/{repository}/blob/{branch}/{place}"


def copy_experiments() -> None:
    """Put the notebooks of the paper's experiments beside the pages, with their times."""
    COPIES.mkdir(exist_ok=True)
    wanted = {path.name: path for path in EXPERIMENTS.glob("*.ipynb")}
    for old in COPIES.iterdir():
        if old.name not in wanted:
            old.unlink()
    for name, path in wanted.items():
        shutil.copy2(path, COPIES / name)
    readme = (EXPERIMENTS / "README.md").read_text(encoding="utf-8")
    table = readme.partition("<!-- results: begin -->")[2].partition("<!-- results: end -->")[0]
    rows = [
        line.split("|") for line in table.replace("](", "](paper_experiments/").strip().splitlines()
    ]
    without_commands = "\n".join("|".join(row[:3] + row[4:]) for row in rows)
    (COPIES / "artefacts.txt").write_text(without_commands, encoding="utf-8")


def link_to_copies(app: Sphinx, name: str, source: list[str]) -> None:
    """Let links that hold in the repository lead to the copies of notebooks."""
    up = "../" * name.count("/")
    source[0] = source[0].replace(f"](../{up}paper_experiments/", f"]({up}paper_experiments/")


def write_help() -> None:
    """Write what `lkm-gpflow --help` and its commands say, for the page on the command line."""
    texts = []
    for command in ("", "discover", "data", "reproduce", "status"):
        line = ["lkm-gpflow", *([command] if command else [])]
        result = CliRunner().invoke(main, [*line[1:], "--help"], prog_name="lkm-gpflow")
        texts.append(f"$ {' '.join([*line, '--help'])}\n{result.output}")
    shutil.rmtree(GENERATED, ignore_errors=True)  # pages of names that are gone
    GENERATED.mkdir()
    (GENERATED / "help.txt").write_text("\n".join(texts), encoding="utf-8")


def mathml(formula: str, display: str) -> str:
    """Write a formula as MathML, which browsers draw without a script."""
    if display == "block" and re.search(r"\\\\|&", formula) and "\\begin" not in formula:
        formula = rf"\begin{{align*}}{formula}\end{{align*}}"
    text = str(convert(formula, display=display)).replace("<mi>&#x0007E;</mi>", "<mo>∼</mo>")
    # Browsers do not know mathvariant="script".
    return re.sub(
        '<mi mathvariant="script">([A-Z])</mi>',
        lambda match: f"<mi>{SCRIPT_LETTERS[ord(match[1]) - ord('A')]}</mi>",
        text,
    )


def inline_math(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def block_math(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write formulas on lines of their own."""
    translator.body.append(
        f'<div class="formula" tabindex="0">{mathml(node.astext(), "block")}</div>'
    )
    raise nodes.SkipNode


def say_where_it_stands(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document
) -> None:
    """Let launch buttons open a copied notebook where it stands in the repository."""
    is_copy = pagename.startswith(f"{COPIES.name}/")
    app.config.html_theme_options["path_to_docs"] = "" if is_copy else HERE.name


def places_of_package() -> dict[str, set[str]]:
    """Collect the names that the source of the package defines, with their files and lines.

    A name stands with and without the modules and the class that it is in.  What only a function
    knows, its arguments among it, has no place.
    """
    places: dict[str, set[str]] = {}
    package = Path(lkm.__file__).parent

    def add(name: str, place: str) -> None:
        parts = name.split(".")
        for i in range(len(parts)):
            places.setdefault(".".join(parts[i:]), set()).add(place)

    def walk(node: ast.AST, within: str, file: str, *, in_function: bool = False) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                name = f"{within}.{child.name}"
                add(name, f"{file}#L{child.lineno}-L{child.end_lineno}")
                is_class = isinstance(child, ast.ClassDef)
                walk(child, name if is_class else within, file, in_function=not is_class)
                continue
            if isinstance(child, ast.arg):
                add(child.arg, "")
            elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                place = "" if in_function else f"{file}#L{child.lineno}"
                add(child.id if in_function else f"{within}.{child.id}", place)
            elif isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store):
                add(f"{within}.{child.attr}", f"{file}#L{child.lineno}")
            walk(child, within, file, in_function=in_function)

    for path in package.rglob("*.py"):
        file = path.relative_to(package.parent)
        parts = file.parent.parts if path.stem == "__init__" else file.with_suffix("").parts
        add(".".join(parts), file.as_posix())
        walk(ast.parse(path.read_text(encoding="utf-8")), ".".join(parts), file.as_posix())
    return places


PLACES = places_of_package()


def find_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: nodes.TextElement
) -> nodes.Element | None:
    """Lead a name to its page, an inner one to its source once the repository is known.

    Arguments and names of several places are shown as code.  A name that the package does not have
    is left to the warning.
    """
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].lstrip("~.")
    ending = "." + (target.rpartition(".")[2] if target.startswith("lkm_gpflow.") else target)
    pages = [
        (name, entry)
        for name, entry in env.domains.python_domain.objects.items()
        if name.endswith(ending) and not entry.aliased
    ]
    if len(pages) == 1:
        name, entry = pages[0]
        return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, shown, name)
    places = PLACES.get(target, set())
    if len(places) == 1 and repository and (place := next(iter(places))):
        return nodes.reference("", "", shown, internal=False, refuri=source(place))
    return shown if places else None


def keep_first_line(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Undo that napoleon takes what stands before a colon for the type of a property."""
    text = inspect.getdoc(obj) or ""
    if what == "property" and "---" not in text:
        lines[:] = [*text.splitlines(), ""]


def name_aliases(
    app: Sphinx,
    what: str,
    name: str,
    obj: object,
    options: object,
    signature: str | None,
    returned: str | None,
) -> tuple[str, str] | None:
    """Show the names of `autodoc_type_aliases` within a union or a tuple, too."""
    if signature is None:
        return None
    alias = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
    return alias.sub(r"\1", signature), alias.sub(r"\1", returned or "")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Copy what stands elsewhere, and register the formulas."""
    copy_experiments()
    write_help()
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.connect("source-read", link_to_copies)
    app.connect("missing-reference", find_name)
    app.connect("autodoc-process-signature", name_aliases)
    app.connect("autodoc-process-docstring", keep_first_line, priority=600)
    app.connect("html-page-context", say_where_it_stands, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
