"""Where the publishers' files are: address, checksum, and the folder they are kept in.

The files are never part of the package. Addresses name a commit, so that everybody gets the same
bytes, and a checksum makes sure of it.
"""

from __future__ import annotations

import hashlib
import os
import sys
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from ..runtime.replacing import replacing

FOLDER_VARIABLE = "LKM_GPFLOW_DATA"

_PATIENCE = 60.0  # seconds that a publisher may be silent

GITHUB = "https://raw.githubusercontent.com"
_GPSS = f"{GITHUB}/anh-tong/gpss-research/8f05da746c09c98830bed081540ed5401a987323/srkl-data"
_RATES = f"{GITHUB}/danny-1k/Currencies-16-07-2024/d50559790ca8b1a5f50792c23efd84650af4f8f3/data"
_LKM = f"{GITHUB}/LKMGP/LKM/97eb542bbcb13c4241de672b07cf5e4536ddc5f8/data"
_BONN = f"{GITHUB}/RYH2077/EEG-Epilepsy-Datasets/185859ab48bc701c9a10f6bb2b5f76d8e28e4003"


class ChecksumError(RuntimeError):
    """A file is not the one that the tables are built from."""


class DownloadError(RuntimeError):
    """A file is absent and could not be downloaded."""


@dataclass(frozen=True)
class RawFile:
    """One file of a publisher: the name it is kept under, its address and its SHA-256."""

    name: str
    url: str
    sha256: str


# fmt: off
RAW_FILES: dict[str, tuple[RawFile, ...]] = {
    "stocks": (
        RawFile("stock-9.mat", f"{_GPSS}/stock-9/stock-9.mat",
                "e2e788569973906510686c4c861e4adcc80f65b9cccd3467715042c340a62a38"),
    ),
    "houses": (
        RawFile("house-6.mat", f"{_GPSS}/house-6/house-6.mat",
                "e582d45f6ef17ff44870cf5ee6cbfaed1e0ab6ec43817fbc4b1263d53a17fe76"),
    ),
    "currencies": (
        RawFile("new_exchange_train.mat", f"{_GPSS}/exchange/new_exchange_train.mat",
                "811131dd51f353b3f14631c999ff95fe0fe6bada5e811123fa321db9efd0e4e4"),
        RawFile("USDZAR.csv", f"{_RATES}/USDZAR.csv",
                "4ccd52c9ea2edb5d7cc8fb7299f6468cd67aaeb7132b68ef96e8a76aa19bf910"),
        RawFile("USDIDR.csv", f"{_RATES}/USDIDR.csv",
                "cfa63ad0d08783b6472f06e51e194b8b3753e217bfa367b7378891bbcef468e7"),
        RawFile("USDMYR.csv", f"{_RATES}/USDMYR.csv",
                "291c3df0f84ff3df1b3d63eb4d3c0db20788a3325e0fda2f0917eee5dff81064"),
        RawFile("USDRUB.csv", f"{_RATES}/USDRUB.csv",
                "033e0c5e09c0262e0c8d57edff506282d5ca4cb3c5c67685a02cbf9912266926"),
    ),
    "gonu": (
        RawFile("gonu_train.mat", f"{_LKM}/gonu/train/gonu_train.mat",
                "c462bc581eb01a12af34124e8f8a6b77c774f072168fdebec07cd740c2703853"),
        RawFile("gonu_test.mat", f"{_LKM}/gonu/test/gonu_test.mat",
                "e5146516c0b4b99e84712d2f220789ec7010e91fd30ef42410a5610a294e2f75"),
    ),
    "seizure": (
        RawFile("bonn-eeg.zip", f"{_BONN}/Bonn%20EEG%20dataset.zip",
                "f4c2dc52fd5320d4404fcbc6ecb9db69a4a7e408df4e3d5456530343dbcb75ad"),
    ),
}
# fmt: on


def folder() -> Path:
    """Return the folder that files are looked for in and downloaded to; it may not exist yet."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named).expanduser() if named else _caches() / "lkm_gpflow"


def _caches() -> Path:
    """Return the folder in which a user's programs keep what can be had again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def fetch_dataset(dataset: str) -> list[Path]:
    """Return the paths of a data set's files, in the order of `RAW_FILES`.

    Nothing is written where a file exists, so the folder may be read-only.
    """
    return fetch_files(dataset, RAW_FILES.get(dataset, ()))


def fetch_files(dataset: str, files: Sequence[RawFile], copies: Sequence[Path] = ()) -> list[Path]:
    """Return the paths of files, downloading those that are nowhere yet.

    They are looked for in the folder of the raw files and in those of `copies`.
    """
    paths = []
    for file in files:
        there = [place / file.name for place in (folder(), *copies)]
        path = next((path for path in there if path.exists()), there[0])
        if path.exists():
            _check(path, file)
        else:
            _download(dataset, file, path)
        paths.append(path)
    return paths


def _check(path: Path, file: RawFile) -> None:
    """A file that is wrong may be somebody's own: say so, and leave it alone."""
    if path.is_dir():
        raise ChecksumError(f"expected the file {path.name}, got a folder of that name: {path}")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != file.sha256:
        raise ChecksumError(
            f"{path} is not the file that the tables are built from: expected SHA-256 "
            f"{file.sha256}, found {found}; delete it to download again"
        )


def _download(dataset: str, file: RawFile, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        content = _served(dataset, file, path.parent)
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise ChecksumError(
                f"what {file.url} serves today is not the file that data set {dataset!r} is built "
                f"from (expected SHA-256 {file.sha256}); put that file into {path.parent} by hand, "
                f"or name a folder that has it in the environment variable {FOLDER_VARIABLE}"
            )
        with replacing(path) as unfinished:
            unfinished.write_bytes(content)
    except OSError as error:
        raise DownloadError(
            f"data set {dataset!r} needs {file.name}, and the folder {path.parent} cannot be "
            f"written to ({error.strerror}): name another one in the environment variable "
            f"{FOLDER_VARIABLE}"
        ) from error


def _served(dataset: str, file: RawFile, place: Path) -> bytes:
    """Return what the publisher serves."""
    try:
        with urllib.request.urlopen(file.url, timeout=_PATIENCE) as response:
            content: bytes = response.read()
    except (OSError, HTTPException) as error:
        raise DownloadError(
            f"data set {dataset!r} needs {file.name}, which is not in {place} and could "
            f"not be downloaded from {file.url} ({type(error).__name__}); with a network, try "
            f"again, or name a folder that has the file in the environment variable "
            f"{FOLDER_VARIABLE}"
        ) from error
    return content
