# SPDX-License-Identifier: Apache-2.0
"""The package, as pip builds and installs it."""

import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

from dialtone_client import __version__

FOLDER = pathlib.Path(__file__).parent.parent


def test_the_package_has_the_modules_and_their_types_and_nothing_else(tmp_path: pathlib.Path) -> None:
    # Since 70.1 it builds wheels without another package.
    pytest.importorskip("setuptools", "70.1")
    source = tmp_path / "source"
    shutil.copytree(FOLDER, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check", "--no-deps", "--no-index",
         "--no-build-isolation", "--wheel-dir", str(tmp_path), str(source)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert built.returncode == 0, built.stdout
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"dialtone_client-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("METADATA"))
    modules = {f"dialtone_client/{file.name}" for file in (FOLDER / "src/dialtone_client").glob("*.py")}
    assert names == modules | {"dialtone_client/py.typed"}
    assert "Requires-Python: >=3.9" in metadata
