"""Tasks, each in an environment of its own: `nox`, or `nox -s tests-3.13`."""

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"


@nox.session(python=["3.10", "3.11", "3.12", "3.13"])
def tests(session: nox.Session) -> None:
    """Run the tests; from Python 3.13 on those that need no TensorFlow."""
    session.install("-e", ".[test]")
    session.run("pytest", *session.posargs)


@nox.session(python="3.13", default=False)
def gpflow_on_numpy_2(session: nox.Session) -> None:
    """Run all tests with GPflow on NumPy 2, though it asks for an older one."""
    session.install("-e", ".[test,tensorflow]")
    session.install("--no-deps", "gpflow>=2.11.2,<2.12")
    session.run("pytest", *session.posargs)


@nox.session(python="3.11")
def lint(session: nox.Session) -> None:
    """Run ruff, mypy and the import contracts."""
    session.install("-e", ".[test]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("lint-imports")


@nox.session(python="3.11", default=False)
def docs(session: nox.Session) -> None:
    """Build the site."""
    session.install(".[docs]")
    session.run("sphinx-build", "-W", "--keep-going", "notebooks", "site")
