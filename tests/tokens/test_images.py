"""Images, sound and documents cost what the provider's formula says, never what their base64 text would."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.tokens import TokenCounter
from leporello.tokens.media import audio_seconds, document_pages, image_size, is_data

sizes = st.tuples(st.integers(1, 12_000), st.integers(1, 12_000))


def png(width: int, height: int, weight: int = 0) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"\x00\x00\x00\rIHDR" + struct.pack(">II", width, height) + bytes(weight)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(20)


def jpeg(width: int, height: int) -> bytes:
    thumbnail = b"\xff\xe1" + struct.pack(">H", 5_000) + bytes(4_998)
    context = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3)
    return b"\xff\xd8" + thumbnail + context + bytes(50)


def webp_lossy(width: int, height: int) -> bytes:
    return b"RIFF____WEBPVP8 " + bytes(10) + struct.pack("<HH", width, height) + bytes(9)


def webp_lossless(width: int, height: int) -> bytes:
    return b"RIFF____WEBPVP8L" + bytes(5) + struct.pack("<I", (width - 1) | (height - 1) << 14) + bytes(9)


def webp_extended(width: int, height: int) -> bytes:
    return b"RIFF____WEBPVP8X" + bytes(8) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")


def url_part(data: bytes, detail: str = "auto") -> dict[str, object]:
    url = "data:image/png;base64," + base64.b64encode(data).decode()
    return {"type": "image_url", "image_url": {"url": url, "detail": detail}}


def source_part(data: bytes) -> dict[str, object]:
    return {"type": "image", "source": {"type": "base64", "data": base64.b64encode(data).decode()}}


@pytest.mark.parametrize("form", [png, gif, jpeg, webp_lossy, webp_lossless, webp_extended])
@pytest.mark.parametrize("size", [(1, 1), (640, 480), (8_000, 3_000)])
def test_the_size_is_read_from_the_first_bytes(form: object, size: tuple[int, int]) -> None:
    """All common formats, in both dialects."""
    data = form(*size)  # type: ignore[operator]
    assert image_size(url_part(data)) == size
    assert image_size(source_part(data)) == size
    assert (
        image_size({"type": "input_image", "image_url": f"data:image/x;base64,{base64.b64encode(data).decode()}"})
        == size
    )


def image_cost(model: str, part: dict[str, object]) -> int:
    counter = TokenCounter.for_model(model)
    return counter.message({"role": "user", "content": [part]}) - counter.message({"role": "user", "content": ""})


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        # Published examples and formulas of the vendors.
        ("gpt-4o", (1_024, 1_024), 765),
        ("gpt-4o", (2_048, 4_096), 1_105),
        ("gpt-4.1-mini", (1_024, 1_024), 1_659),
        ("gpt-5", (1_024, 1_024), 70 + 4 * 140),
        ("claude-sonnet-4-5", (200, 200), 64),
        ("claude-sonnet-4-5", (1_000, 1_000), 1_296),
        ("claude-opus-4-8", (1_920, 1_080), 2_691),
        ("gemini-3-pro", (300, 300), 258),
        ("gemini-3-pro", (1_500, 700), 516),
    ],
)
def test_each_vendor_charges_by_its_own_formula(model: str, size: tuple[int, int], tokens: int) -> None:
    """The figures that the vendors publish."""
    assert image_cost(model, url_part(png(*size))) == tokens


def test_low_detail_is_flat() -> None:
    """OpenAI's low detail costs the same for every size."""
    assert image_cost("gpt-4o", url_part(png(4_000, 4_000), "low")) == 85


@given(size=sizes)
@pytest.mark.parametrize(
    ("model", "most"),
    [("gpt-4o", 85 + 170 * 8), ("claude-sonnet-4-5", 1_568), ("claude-opus-5", 4_784), ("gpt-5-nano", 3_779)],
)
def test_no_picture_costs_more_than_the_vendors_most(model: str, most: int, size: tuple[int, int]) -> None:
    """Large pictures are scaled down before they are charged."""
    assert 1 <= image_cost(model, url_part(png(*size))) <= most


@pytest.mark.parametrize("model", ["gpt-5", "claude-opus-5", "gemini-3-pro", "other"])
def test_the_weight_of_the_file_does_not_matter(model: str) -> None:
    """A megabyte of base64 costs what its pixels cost."""
    light, heavy = url_part(png(800, 600)), url_part(png(800, 600, weight=1_000_000))
    assert image_cost(model, light) == image_cost(model, heavy) < 2_000


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://example.org/picture.png"}},
        {"type": "image_url", "image_url": "https://example.org/picture.png"},
        {"type": "image_url"},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "image", "source": {"type": "base64", "data": "not base64 at all!"}},
        url_part(b"\xff\xd8\xff\xe0\x00\x00"),
        url_part(png(0, 0)),
    ],
)
def test_a_picture_nobody_can_measure_costs_a_usual_one(part: dict[str, object]) -> None:
    """Links, file references and broken data count as a picture of 1,024 squared."""
    assert image_cost("gpt-4o", part) == 765


def test_pictures_inside_a_tool_result_are_seen() -> None:
    """A screenshot in a result block of the other dialect is an image, not text."""
    block = {"type": "tool_result", "tool_use_id": "t", "content": [source_part(png(1_000, 1_000, weight=500_000))]}
    assert 1_296 <= image_cost("claude-sonnet-4-5", block) < 1_400


def test_sound_is_charged_by_its_length() -> None:
    """Ten seconds of a WAV file, by its own header, at ten tokens a second."""
    rate = 32_000
    wav = b"RIFF____WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00" + struct.pack("<II", 16_000, rate) + bytes(rate * 10)
    part = {"type": "input_audio", "input_audio": {"format": "wav", "data": base64.b64encode(wav).decode()}}
    assert audio_seconds(part) == pytest.approx(10, rel=0.01)
    assert image_cost("gpt-4o", part) == pytest.approx(100, rel=0.02)
    assert image_cost("gemini-3-pro", part) == pytest.approx(320, rel=0.02)


def test_documents_are_charged_by_the_page() -> None:
    """Pages are counted in the file; without readable pages they are guessed from its size; a reference is one page."""
    body = b"%PDF-1.7 " + b"".join(b"<< /Type /Page /Parent 2 0 R >>\n" for _ in range(7)) + b"<< /Type /Pages >>"
    part = {"type": "file", "file": {"file_data": "data:application/pdf;base64," + base64.b64encode(body).decode()}}
    assert document_pages(part) == 7
    packed = {"type": "document", "source": {"type": "base64", "data": base64.b64encode(bytes(500_000)).decode()}}
    assert document_pages(packed) == 10
    assert document_pages({"type": "file", "file": {"file_id": "file_1"}}) == 1
    text = {"type": "document", "source": {"type": "text", "data": "three little words"}}
    assert image_cost("gpt-5", text) == 3


@given(data=st.binary(min_size=2_000, max_size=4_000))
def test_base64_is_recognised_as_data(data: bytes) -> None:
    """Long base64 is data in every alphabet; prose, Chinese without blanks and code are not."""
    assert is_data(base64.b64encode(data).decode())
    assert is_data(base64.urlsafe_b64encode(data).decode())


@pytest.mark.parametrize("text", ["word " * 500, "没有空格的中文" * 300, "x = {1: 'a'};" * 200, "short"])
def test_words_are_not_taken_for_data(text: str) -> None:
    """Unknown parts full of words are counted as words."""
    assert not is_data(text)
    assert image_cost("gpt-5", {"type": "from_the_future", "body": text}) >= TokenCounter.for_model("gpt-5").text(text)
