"""The file of experiments: grids, ids, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from tiny_notebooks import write_squares

from lkm_gpflow.comparators import comparator_names
from lkm_gpflow.experiments import benchmark
from lkm_gpflow.experiments.folders import RESULTS_VARIABLE, notebooks_folder, results_folder
from lkm_gpflow.experiments.notebooks import check_parameters, parameters_of
from lkm_gpflow.experiments.overview import Progress, progress_of, with_results
from lkm_gpflow.experiments.profiles import PROFILES, Plan, Run, configuration_hash, read_plan
from lkm_gpflow.experiments.store import Store
from lkm_gpflow.experiments.tables import METHODS

ROOT = Path(__file__).resolve().parents[2]
ENTRY = {"id": "a", "artefact": "A", "notebook": "a.ipynb", "runs": {"smoke": [{"minutes": 1}]}}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return read_plan()


def write(folder: Path, *entries: object) -> Path:
    path = folder / "experiments.yml"
    path.write_text(yaml.safe_dump(list(entries), sort_keys=False), encoding="utf-8")
    return path


# --- the paper's ---


def test_every_notebook_is_in_every_profile(plan: Plan) -> None:
    there = {path.name for path in (ROOT / "paper_experiments").glob("*.ipynb")}
    assert {each.notebook for each in plan.experiments} == there
    for profile in PROFILES:
        assert {run.notebook for run in plan.runs(profile)} == there, profile


@pytest.mark.parametrize("profile", PROFILES)
def test_notebooks_take_their_parameters(plan: Plan, profile: str) -> None:
    for run in plan.runs(profile):
        check_parameters(plan.folder / run.notebook, run.parameters)


def test_the_paper_profile_has_five_seeds_of_all_methods(plan: Plan) -> None:
    ran: dict[tuple[object, object], set[object]] = {}
    for run in plan.runs("paper", ["extrapolation"]):
        p = run.parameters
        assert p["profile"] == "paper"
        ran.setdefault((p["dataset"], p["method"]), set()).add(p["seed"])
    assert {method for _, method in ran} == set(METHODS)
    rivals = {method.comparator for method in benchmark.METHODS.values()}
    # Tables of the paper are not all positive.
    assert set(comparator_names()) == set(METHODS) | rivals | {"lkm-log"}
    assert len(ran) == 4 * len(METHODS)
    for (_, method), seeds in ran.items():
        fixed = str(method).startswith(("auto-", "last-", "drift", "seasonal-"))
        assert seeds == ({0} if fixed else {0, 1, 2, 3, 4}), method


def test_what_quick_has_run_the_paper_profile_need_not(plan: Plan) -> None:
    quick, paper = ({run.hash for run in plan.runs(profile)} for profile in ("quick", "paper"))
    assert quick <= paper


def test_profiles_are_expected_to_take_as_long_as_they_say(plan: Plan) -> None:
    hours = {
        p: sum(run.minutes for run in plan.runs(p)) / 60 / 2 for p in PROFILES
    }  # two processors
    assert hours["smoke"] < 10 / 60
    assert hours["quick"] < 1
    assert hours["paper"] < 5


def test_the_file_is_part_of_the_package(plan: Plan) -> None:
    import lkm_gpflow.experiments as package

    assert (Path(package.__file__).parent / "experiments.yml").is_file()
    assert 'packages = ["lkm_gpflow"]' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


# --- grids and ids ---


def test_a_grid_is_every_combination_in_order(tmp_path: Path) -> None:
    grid = {"method": ["b", "a"], "seed": [0, 1], "fast": True}
    entry = {**ENTRY, "runs": {"quick": [{"minutes": 2, "grid": grid}]}, "data": ["toy"]}
    runs = read_plan(write(tmp_path, entry)).runs("quick")
    assert [run.id for run in runs] == [
        "a/b_seed-0_fast-True",
        "a/b_seed-1_fast-True",
        "a/a_seed-0_fast-True",
        "a/a_seed-1_fast-True",
    ]
    assert {run.minutes for run in runs} == {2.0}
    assert {run.data for run in runs} == {("toy",)}
    assert read_plan(write(tmp_path, ENTRY)).runs("smoke")[0].id == "a"


def test_a_parameter_dataset_is_the_data(plan: Plan) -> None:
    for run in plan.runs("paper", ["extrapolation"]):
        assert run.data == (run.parameters["dataset"],)


def test_the_hash_is_of_the_values_and_not_of_their_order() -> None:
    one = Run("a", "a.ipynb", {"x": 1, "y": "b"})
    assert one.hash == Run("a", "a.ipynb", {"y": "b", "x": 1}, minutes=9.0).hash
    assert one.hash == configuration_hash(json.loads(json.dumps(one.configuration)))
    others = [
        Run("b", "a.ipynb", {"x": 1, "y": "b"}),
        Run("a", "b.ipynb", {"x": 1, "y": "b"}),
        Run("a", "a.ipynb", {"x": 2, "y": "b"}),
        Run("a", "a.ipynb", {"x": 1, "y": "b"}, inputs="new"),
    ]
    assert len({one.hash, *(other.hash for other in others)}) == 5


def test_only_chooses_experiments_runs_and_patterns(plan: Plan) -> None:
    runs = plan.runs("paper", ["table1", "extrapolation/gonu_lkm_seed-3_paper"])
    assert [run.experiment for run in runs] == ["extrapolation", "table1"]
    gonu = plan.runs("paper", ["extrapolation/gonu*"])
    assert {run.parameters["dataset"] for run in gonu} == {"gonu"}
    with pytest.raises(ValueError, match=r"'tabel1'.*table1"):
        plan.runs("paper", ["tabel1"])
    with pytest.raises(ValueError, match="smoke, quick, paper"):
        plan.runs("fast")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([{"id": "a"}], r"entry 1: expected keys .*'runs'.*got \['id'\]"),
        ([{**ENTRY, "note": 1}], "got .*'note'"),
        ([ENTRY, ENTRY], "different ids"),
        ([{**ENTRY, "runs": {"fast": []}}], r"runs: expected keys among .*'smoke'.*got \['fast'\]"),
        ([{**ENTRY, "runs": {"smoke": [{"grid": {}}]}}], "minutes"),
        ([{**ENTRY, "runs": {"smoke": [{"minutes": 1, "grid": {"x": [[1]]}}]}}], r"got \[1\]"),
        ([{**ENTRY, "runs": {"smoke": [{"minutes": 1}] * 2}}], "twice"),
        ([{**ENTRY, "reads": ["b"]}], r"reads \['b'\]"),
        (
            [
                {
                    **ENTRY,
                    "runs": {
                        "smoke": [{"minutes": 1, "grid": {"x": "v"}}],
                        "quick": [{"minutes": 1, "grid": {"y": "v"}}],
                    },
                }
            ],
            "two runs have the id 'a/v'",
        ),
        (["text"], "entry 1: expected keys"),
        ([], r"expected a list of experiments, got \[\]"),
        ([{**ENTRY, "id": 7}], r"entry 1 \(7\): expected id to be text, got 7"),
        ([{**ENTRY, "runs": {"smoke": None}}], r"entry 1 \(a\), smoke: expected a list of grids"),
        (
            [{**ENTRY, "runs": {"smoke": [{"minutes": 1, "grid": None}]}}],
            r"\(a\), smoke: expected grid to be parameters and their values, got None",
        ),
        (
            [{**ENTRY, "runs": {"smoke": [{"minutes": "soon"}]}}],
            r"\(a\), smoke: expected minutes to be a number, got 'soon'",
        ),
        ([{**ENTRY, "reads": "a"}], r"\(a\): expected reads to be a list of names, got 'a'"),
        ([{**ENTRY, "data": [1]}], r"\(a\): expected data to be a list of names, got 1"),
        ([{**ENTRY, "reads": ["a"]}], "reads that are no circle, got a reads a"),
        (
            [
                {**ENTRY, "reads": ["b"]},
                {**ENTRY, "id": "b", "reads": ["c"]},
                {**ENTRY, "id": "c", "reads": ["a"]},
            ],
            "got (a reads b reads c reads a|b reads c reads a reads b|c reads a reads b reads c)",
        ),
    ],
)
def test_bad_files_are_refused(entries: list[object], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        read_plan(write(tmp_path, *entries))


def test_what_is_no_list_or_no_yaml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "experiments.yml"
    for text, message in (("a: 1", "list of experiments, got {'a': 1}"), ("[", "expected YAML")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            read_plan(path)


# --- parameters of notebooks, folders ---


def test_parameters_are_those_of_the_tagged_cell(tmp_path: Path) -> None:
    cells = [
        {"metadata": {"tags": ["parameters"]}, "source": ["a: int = 1  # note\n", "b = 'x'\n"]},
        {"metadata": {}, "source": "c = 1"},
    ]
    assert parameters_of({"cells": cells}) == ["a", "b"]
    plan = write_squares(tmp_path, [1])
    check_parameters(tmp_path / "square.ipynb", plan.runs("smoke")[0].parameters)
    with pytest.raises(ValueError, match=r"among \['x'\].*got \['y'\]"):
        check_parameters(tmp_path / "square.ipynb", {"x": 1, "y": 2})
    with pytest.raises(ValueError, match="there is no"):
        check_parameters(tmp_path / "cube.ipynb", {})


def test_notebooks_are_found_from_the_clone_and_from_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "paper_experiments"
    write_squares(folder, [1])
    site = tmp_path / "notebooks"  # a build of the site leaves a copy there
    write_squares(site / "paper_experiments", [1])
    for here in (tmp_path, folder, site):
        monkeypatch.chdir(here)
        assert notebooks_folder() == folder
    monkeypatch.chdir(tmp_path.parent)
    assert notebooks_folder() == ROOT / "paper_experiments"  # beside the package
    assert results_folder() == ROOT / "paper_experiments" / "results"
    monkeypatch.setenv(RESULTS_VARIABLE, str(tmp_path))
    assert results_folder() == tmp_path


def test_an_installed_package_without_a_clone_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lkm_gpflow.experiments.folders.__file__", str(tmp_path / "a" / "b" / "c"))
    with pytest.raises(ValueError, match="in a clone of it"):
        notebooks_folder()


def test_minutes_are_of_the_processor_where_a_notebook_tells_them(plan: Plan) -> None:
    done = [({"processor_seconds": 30.0}, 900.0), ({"rmse": 1.0}, 60.0)]
    records = [SimpleNamespace(scores=scores, seconds=seconds) for scores, seconds in done]
    run = plan.runs("smoke")[0]
    progress = Progress(plan.experiments[0], tuple((run, r) for r in records), (), ())  # type: ignore[misc]
    assert progress.minutes_taken == 1.5


def test_the_page_of_the_notebooks_says_what_the_results_say(plan: Plan) -> None:
    page = (ROOT / "paper_experiments" / "README.md").read_text(encoding="utf-8")
    progress = progress_of(plan, "paper", Store(plan.folder / "results"))
    again = "lkm-gpflow status --profile paper --page paper_experiments/README.md"
    assert with_results(page, progress, "paper") == page, f"bring it up to date: {again}"
