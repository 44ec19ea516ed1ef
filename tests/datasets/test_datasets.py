"""Tables against the reference, files against checksums, generated data against their truth."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lkm_gpflow import datasets
from lkm_gpflow.datasets import downloads
from lkm_gpflow.datasets.downloads import RAW_FILES, ChecksumError, DownloadError, RawFile

REAL = ["stocks", "houses", "currencies", "gonu", "seizure"]
TABLES = REAL[:-1]


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "kept"
    monkeypatch.setenv(downloads.FOLDER_VARIABLE, str(folder))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return folder


@pytest.fixture
def publisher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RawFile]:
    """A server on this machine whose one file takes the place of the stocks'."""
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "a file.txt").write_bytes(b"prices")
    handler = functools.partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/a%20file.txt"
        file = RawFile("stock-9.mat", url, hashlib.sha256(b"prices").hexdigest())
        monkeypatch.setitem(RAW_FILES, "stocks", (file,))
        yield file
        server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing, so that the tests can see what the package says."""


# The tables


@pytest.mark.parametrize("name", TABLES)
def test_table_equals_the_reference_to_the_last_digit(name: str, tables: Path) -> None:
    expected = pd.read_csv(
        tables / f"{name}.csv", index_col="date", parse_dates=True, float_precision="round_trip"
    )
    found = datasets.load(name).frame
    assert isinstance(found.index, pd.DatetimeIndex)
    assert found.index.name == "date"
    assert list(found.columns) == list(expected.columns)
    assert (found.dtypes == np.float64).all()
    np.testing.assert_array_equal(found.index, expected.index)
    np.testing.assert_array_equal(found.to_numpy(), expected.to_numpy())


@pytest.mark.parametrize(
    ("name", "train", "test"),
    [("stocks", 116, 13), ("houses", 108, 12), ("currencies", 119, 13), ("gonu", 141, 16)],
)
def test_split_is_that_of_the_paper(name: str, train: int, test: int, tables: Path) -> None:
    data = datasets.load(name)
    assert (len(data.split().train), len(data.split().test)) == (train, test)
    assert data.test_size == test
    pd.testing.assert_frame_equal(pd.concat(data.split()), data.frame, check_freq=False)


def test_gonu_is_scored_in_z_scores_over_all_weeks(tables: Path) -> None:
    gonu = datasets.load("gonu")
    assert gonu.score_scale is not None
    z = (gonu.frame - gonu.score_scale["location"]) / gonu.score_scale["scale"]
    np.testing.assert_allclose(z.mean(), 0, atol=1e-12)
    np.testing.assert_allclose(z.std(ddof=0), 1, rtol=1e-12)


def test_seizure_equals_the_reference(tables: Path) -> None:
    expected = pd.read_csv(tables / "seizure.csv.gz", index_col="id")
    data = datasets.load("seizure")
    assert data.labels is not None
    assert data.frame.shape == (178, 11_500)
    np.testing.assert_array_equal(data.frame.T.to_numpy(), expected.drop(columns="y").to_numpy())
    np.testing.assert_allclose(data.frame.index, np.arange(178) / 173.61)
    for labels in (data.frame.columns, data.labels.index):
        assert list(labels) == list(expected.index)
    assert list(data.labels) == list(expected["y"])


def test_seizure_draws_the_same_number_of_each_class(tables: Path) -> None:
    one, again, other = (datasets.load("seizure", per_class=10, seed=seed) for seed in (0, 0, 1))
    assert one.labels is not None
    assert one.labels.value_counts().to_dict() == dict.fromkeys(range(1, 6), 10)
    assert list(one.frame.columns) == list(one.labels.index) == list(again.frame.columns)
    assert list(one.frame.columns) != list(other.frame.columns)


# Names and options


@pytest.mark.parametrize("call", [datasets.load, datasets.fetch])
def test_unknown_name_lists_the_names_and_close_ones(call) -> None:
    with pytest.raises(ValueError, match=r"toy, demo, stocks.* did you mean 'stocks'\?"):
        call("stoks")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("stocks", {"seed": 1}, "data set 'stocks' has no option 'seed'; its options: none"),
        ("demo", {"per_class": 1}, "data set 'demo' has no option 'per_class'; its options: seed"),
        ("seizure", {"seed": 1}, "`seed` only with `per_class`"),
    ],
)
def test_options_that_do_not_fit_are_refused(name: str, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        datasets.load(name, **options)


def test_every_address_is_encoded_and_every_checksum_whole() -> None:
    assert sorted(RAW_FILES) == sorted(REAL)
    for file in (file for files in RAW_FILES.values() for file in files):
        assert re.fullmatch(r"https://[\w./%-]+", file.url)
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)


# Files


def test_downloads_once_and_quietly(
    empty_folder: Path, publisher: RawFile, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    (path,) = datasets.fetch("stocks")
    assert path == empty_folder / "stock-9.mat"
    assert path.read_bytes() == b"prices"
    gone = dataclasses.replace(publisher, url="http://127.0.0.1:9/gone")
    monkeypatch.setitem(RAW_FILES, "stocks", (gone,))
    assert datasets.fetch("stocks") == [path]
    assert capfd.readouterr() == ("", "")


def test_corrupted_file_is_reported_and_kept(empty_folder: Path, publisher: RawFile) -> None:
    empty_folder.mkdir()
    path = empty_folder / "stock-9.mat"
    path.write_bytes(b"mine")
    with pytest.raises(ChecksumError) as caught:
        datasets.load("stocks")
    found = hashlib.sha256(b"mine").hexdigest()
    for part in (str(path), publisher.sha256, found, "delete it to download again"):
        assert part in str(caught.value)
    assert path.read_bytes() == b"mine"


def test_file_that_changed_at_its_publisher_is_refused(
    empty_folder: Path, publisher: RawFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = dataclasses.replace(publisher, sha256=64 * "0")
    monkeypatch.setitem(RAW_FILES, "stocks", (expected,))
    with pytest.raises(ChecksumError, match=re.escape(publisher.url)):
        datasets.load("stocks")
    assert list(empty_folder.iterdir()) == []


@pytest.mark.parametrize("cause", ["no server", "no such page", "folder cannot be made"])
def test_download_error_says_what_where_and_how(
    cause: str, empty_folder: Path, publisher: RawFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = publisher
    if cause == "no server":
        file = dataclasses.replace(publisher, url="http://127.0.0.1:9/stock-9.mat")
    elif cause == "no such page":
        file = dataclasses.replace(publisher, url=f"{publisher.url}.gz")
    else:
        empty_folder.write_text("a file where the folder should be")
    monkeypatch.setitem(RAW_FILES, "stocks", (file,))
    with pytest.raises(DownloadError) as caught:
        datasets.load("stocks")
    said = str(caught.value)
    for part in ("'stocks'", str(empty_folder), downloads.FOLDER_VARIABLE):
        assert part in said
    if cause == "folder cannot be made":
        assert "cannot be written to (" in said
        assert "network" not in said
    else:
        assert file.url in said
        assert "with a network" in said


# Generated data


@pytest.mark.parametrize("name", ["toy", "demo"])
def test_generated_data_depend_on_the_seed_alone(name: str) -> None:
    one, again, other = (datasets.load(name, seed=seed) for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(one.frame, again.frame)
    assert not one.frame.equals(other.frame)
    pd.testing.assert_frame_equal(datasets.load(name).frame, datasets.load(name, seed=0).frame)
    assert datasets.fetch(name) == []


def test_toy_is_two_realisations_of_one_periodic_process() -> None:
    toy = datasets.load("toy")
    assert toy.truth is not None
    assert toy.truth.Z.to_numpy().tolist() == [[1], [1]]
    assert toy.truth.kernels == ("1.0 x PER(period=0.25, lengthscale=0.8)",)
    values = toy.frame.to_numpy()
    np.testing.assert_allclose(toy.frame.index[25], 1.0)
    # What a period does not explain is noise (0.1) twice; what the other series does not is all.
    assert np.std(values[25:] - values[:-25]) == pytest.approx(np.sqrt(0.02), rel=0.2)
    assert np.std(values[:, 0] - values[:, 1]) > 0.3


@pytest.mark.parametrize("seed", range(20))
def test_demo_shares_components_and_has_gaps(seed: int) -> None:
    demo = datasets.load("demo", seed=seed)
    assert demo.truth is not None
    Z = demo.truth.Z
    assert demo.frame.shape == (120, 8)
    assert demo.frame.index[0] == pd.Timestamp("2020-01-05")
    assert list(Z.index) == list(demo.frame.columns) == list(demo.units)
    assert len(demo.truth.kernels) == Z.shape[1] == 4
    assert Z.isin([0, 1]).all(axis=None)
    assert Z.any(axis=1).all()
    assert (Z.sum() >= 2).all()
    assert (Z.sum() < 8).sum() >= 3
    missing = demo.frame.isna()
    assert sorted(missing.sum()) == [0, 0, 0, 0, 4, 4, 4, 6]
    assert not missing.tail(12).any(axis=None)
    block = np.flatnonzero(missing.loc[:, missing.sum() == 6])
    assert np.ptp(block) == 5


def test_demo_has_the_covariance_that_its_truth_says() -> None:
    """Over many seeds the variance is that of the model, at every time and in a series' units."""
    x = np.linspace(0, 1, 120)
    prior = np.stack([np.full(120, 1.0), np.full(120, 0.5), np.ones(120), 6 * (x - 0.4) ** 2])
    scores = []
    for seed in range(150):
        demo = datasets.load("demo", seed=seed)
        truth = demo.truth
        assert truth is not None
        sd = np.sqrt(prior.T @ truth.Z.T.to_numpy() + truth.noise_variance)
        scores.append((demo.frame - truth.offset) / truth.scale / sd)
    assert np.nanmean(np.square(scores)) == pytest.approx(1, abs=0.05)
    assert ((truth.noise_variance > 0.01) & (truth.noise_variance < 0.09)).all()


# Display


def test_display_says_what_it_is() -> None:
    demo = dataclasses.replace(datasets.load("demo"), title="a < b")
    for part in ("'demo'", "a < b", "8 series x 120", "2020-01-05 to 2022-04-17", "18 of 960"):
        assert part in repr(demo)
    assert "a &lt; b" in demo._repr_html_()
    assert demo.source in demo._repr_html_()
    assert "0 to 4" in repr(datasets.load("toy"))
