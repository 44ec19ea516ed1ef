"""Nothing that others write at start-up reaches a terminal, a log or a notebook."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from small import small_table

from lkm_gpflow.runtime.quiet import VERBOSE_VARIABLE, start_up_messages_dropped

BAR = re.compile(r"((about )?[\w ]+ left |done |)\|.*\| +\d+% \d\d:\d\d(, [\w ():?.]+)* *|")
"""A state of a progress bar, at first without the time left, or an empty line."""

NOISE = "I0000 00:00:1795328149.749554    2245 port.cc:153] oneDNN custom operations are on."


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a user, without what would silence TensorFlow."""
    ours = {"TF_CPP_MIN_LOG_LEVEL", VERBOSE_VARIABLE}
    return {name: value for name, value in os.environ.items() if name not in ours} | more


def python(code: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=environment(**more), capture_output=True, text=True, check=False
    )


def test_a_discovery_writes_its_progress_bar_and_nothing_else(tmp_path: Path) -> None:
    """Nor does it load TensorFlow, which takes seconds."""
    small_table().to_csv(tmp_path / "small.csv")
    arguments = ["discover", "small.csv", "--depth", "0", "--restarts", "2", "--jobs", "2"]
    code = (
        "import sys; from lkm_gpflow.cli import main; main(sys.argv[1:], standalone_mode=False); "
        "print('tensorflow' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, "--bases", "SE"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = re.split(r"[\r\n]", done.stderr.replace("\x1b[A", ""))
    assert [line.partition("|")[0] for line in lines if line.startswith("done")] == ["done "]
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line.strip() and not BAR.fullmatch(line)] == []
    assert "report.html" in done.stdout
    assert done.stdout.endswith("False\n")


@pytest.mark.tensorflow
def test_a_notebook_that_imports_the_package_is_quiet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without ipywidgets, too, of which tqdm would warn."""
    for name in ("TF_CPP_MIN_LOG_LEVEL", VERBOSE_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    notebook = new_notebook(
        cells=[
            new_code_cell("import sys\n_ = sys.modules.update(ipywidgets=None)"),
            new_code_cell("import lkm_gpflow as lkm\nimport tqdm.auto"),
            new_code_cell("lkm.discover\nlkm.LKM"),
            new_code_cell("import tensorflow as tf\n_ = tf.constant(1.0) + 1.0"),
        ],
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python", "language": "python"}
        },
    )
    nbformat.write(notebook, tmp_path / "in.ipynb")
    done = papermill.execute_notebook(
        str(tmp_path / "in.ipynb"), str(tmp_path / "out.ipynb"), progress_bar=False
    )
    outputs = [output for cell in done.cells for output in cell.get("outputs", [])]
    assert [output for output in outputs if output.get("name") == "stderr"] == []
    assert "LKM" in outputs[0]["data"]["text/plain"]


@pytest.mark.tensorflow
def test_everything_is_shown_on_demand() -> None:
    """Or the other tests could not tell whether there was anything to silence.

    What TensorFlow says depends on the processor: oneDNN has nothing to say on some.
    """
    loud = python("import lkm_gpflow, tensorflow", **{VERBOSE_VARIABLE: "1"})
    assert "I0000" in loud.stderr


@pytest.mark.tensorflow
def test_the_package_leaves_tensorflow_and_gpflow_as_they_are() -> None:
    """Listing devices does not initialise them, and docstrings, which check_shapes would parse at
    every start, stay as written; in a process without standard error, too."""
    done = python(
        "import os; os.close(2); "
        "import lkm_gpflow as lkm; lkm.LKM; import gpflow, tensorflow as tf; "
        "tf.config.threading.set_inter_op_parallelism_threads(1); "
        "tf.config.set_visible_devices([], 'GPU'); tf.constant(1.0) + 1.0; "
        "print(gpflow.models.GPR.predict_f.__doc__)"
    )
    assert done.returncode == 0
    assert "has shape [*batch*" not in done.stdout
    before = python("import tensorflow as a, lkm_gpflow, tensorflow as b; assert a is b")
    assert before.returncode == 0


def test_what_goes_wrong_while_tensorflow_is_loaded_is_shown(tmp_path: Path) -> None:
    (tmp_path / "tensorflow").mkdir()
    broken = f"import os; os.write(2, b'{NOISE}\\n'); raise ImportError('no such driver')"
    (tmp_path / "tensorflow" / "__init__.py").write_text(broken)
    done = python("import lkm_gpflow; lkm_gpflow.LKM", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert NOISE in done.stderr
    assert "ImportError: no such driver" in done.stderr


def test_what_is_no_start_up_message_is_handed_on(capfd: pytest.CaptureFixture[str]) -> None:
    with start_up_messages_dropped():
        os.write(2, f"a warning of another library\n{NOISE}\nF{NOISE[1:]}\n".encode())
    assert capfd.readouterr().err == f"a warning of another library\nF{NOISE[1:]}\n"


def test_nothing_is_shown_of_an_import_that_is_stopped(capfd: pytest.CaptureFixture[str]) -> None:
    def stopped() -> None:
        with start_up_messages_dropped():
            os.write(2, f"{NOISE}\n".encode())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert capfd.readouterr().err == ""


def test_errors_about_arguments_and_files_need_no_tensorflow(tmp_path: Path) -> None:
    small_table().to_csv(tmp_path / "small.csv")
    (tmp_path / "bad.csv").write_text("time,a\n1,x\n2,3\n")
    long = np.column_stack([np.arange(4001) ** 1.5, np.sin(np.arange(4001))])
    np.savetxt(tmp_path / "long.csv", long, delimiter=",", header="time,a", comments="")
    np.savetxt(tmp_path / "short.csv", np.ones((2, 2)), delimiter=",")
    asked = {
        "absent.csv": "no file",
        "bad.csv": "row 2",
        "short.csv": "expected",
        "long.csv": "expected at most 4000 times",
        "small.csv --bases FOO": "FOO",
        "small.csv --subset 9": "subset",
        "small.csv --time-budget soon": "soon",
    }
    code = (
        f"import sys, os; os.chdir({str(tmp_path)!r})\n"
        "from lkm_gpflow.cli import main\n"
        f"for arguments in {list(asked)!r}:\n"
        "    try: main(['discover', *arguments.split()])\n"
        "    except SystemExit as stopped: print(stopped.code, file=sys.stderr)\n"
        "print('tensorflow' in sys.modules)"
    )
    done = python(code)
    assert done.stdout == "False\n", done.stderr
    said = re.split(r"^2\n", done.stderr, flags=re.MULTILINE)
    for complaint, words in zip([*asked.values(), ""], said, strict=True):
        assert complaint in words
