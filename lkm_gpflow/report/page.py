"""Reports as text, as HTML in a notebook, and as one file that needs no network."""

from __future__ import annotations

import base64
import io
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..discovery.result import Discovery
from ..plotting.style import component_colour, save_figure
from ..runtime.replacing import replacing
from ..runtime.text import level_in_percent

MOST_SERIES = 200
"""Reports are of no more: each has a place on the page, and one beside every other."""

_MOST_PIXELS = 12_000
_DPI = 96


@dataclass(frozen=True)
class Picture:
    """A picture of a report."""

    # Above and below it; the caption says what there is to see.
    title: str
    caption: str
    uri: str  # the picture itself, as a data address

    @classmethod
    def of(cls, title: str, caption: str, ax: Axes) -> Picture:
        """Take the picture of a figure, and close it."""
        figure = ax.figure
        assert isinstance(figure, Figure)
        file = io.BytesIO()
        dpi = min(_DPI, _MOST_PIXELS / max(figure.get_size_inches()))
        save_figure(figure, file, dpi)
        plt.close(figure)
        code = base64.b64encode(file.getvalue()).decode()
        return cls(title, caption, f"data:image/png;base64,{code}")


class Report(ABC):
    """A report: data first, then text, HTML and pictures of them."""

    template: str
    """Name of its two templates, without ".html" and ".md"."""

    @property
    @abstractmethod
    def title(self) -> str:
        """One line that names the subject of the report."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return all of the report's data, in JSON's types."""

    @abstractmethod
    def pictures(self) -> list[Picture]:
        """Draw the pictures."""

    @property
    def text(self) -> str:
        """The report as Markdown."""
        return render(f"{self.template}.md", report=self).rstrip("\n") + "\n"

    def to_json(self) -> str:
        """Return the data as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_html(self, path: str | Path) -> Path:
        """Write one self-contained file; returns its path."""
        path = Path(path)
        html = render("page.html", title=self.title, body=with_contents(self._body()))
        with replacing(path) as unfinished:
            unfinished.write_text(html, "utf-8")
        return path

    def _repr_html_(self) -> str:
        return render("fragment.html", body=self._body())

    def __repr__(self) -> str:
        return self.text

    def _body(self) -> str:
        return render(f"{self.template}.html", report=self, pictures=self.pictures())


def render(name: str, **context: Any) -> str:
    """Fill in a template of this room."""
    return _ENVIRONMENT.get_template(name).render(**context)


def with_contents(body: str) -> str:
    """Return a page with a list of its sections before the first one, if it has three or more."""
    heads = re.findall(r"<h2>(.*?)</h2>", body)
    if len(heads) < 3:
        return body
    for number, head in enumerate(heads, start=1):
        body = body.replace(f"<h2>{head}</h2>", f'<h2 id="section-{number}">{head}</h2>', 1)
    links = (f'<li><a href="#section-{i}">{head}</a></li>' for i, head in enumerate(heads, start=1))
    contents = f'<nav aria-label="Contents"><ul>{"".join(links)}</ul></nav>'
    return body.replace("<h2 id=", f"{contents}\n<h2 id=", 1)


def check_few(found: Discovery) -> None:
    """Raise a ValueError if a discovery has more than `MOST_SERIES` series."""
    columns = list(found.table.frame.columns)
    if len(columns) > MOST_SERIES:
        raise ValueError(
            f"expected at most {MOST_SERIES} series to report on, got {len(columns)}: choose "
            f"some, for example found.select({columns[:3]})"
        )


def markdown(text: object) -> str:
    """Return a text that Markdown shows as it is."""
    return re.sub(r"([\\`*_<>\[\]|#~$&])", r"\\\1", " ".join(str(text).split()))


def markdown_table(rows: Sequence[Sequence[object]]) -> str:
    """Return a head and rows as a table in Markdown."""
    head, *others = (list(map(markdown, row)) for row in rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *others])


def p_value(p: float) -> str:
    """Return a p-value as it stands in a table."""
    if math.isnan(p):
        return "too few"
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


_ENVIRONMENT = Environment(
    loader=PackageLoader("lkm_gpflow.report"),
    autoescape=lambda name: name is None or not name.endswith(".md"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters |= {
    each.__name__: each for each in (level_in_percent, p_value, markdown, markdown_table)
} | {"colour": lambda number: component_colour(number - 1)}
