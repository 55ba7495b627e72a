"""Writes `src/leporello/models/table.json` from maintained data packages.

    python scripts/make_models_table.py            # fetches what it needs into a temporary folder
    python scripts/make_models_table.py --check    # writes nothing, exit 1 when the table would change

litellm's data file gives windows, output caps, prices and cache minimums; genai-prices is the second opinion on windows
and prices, and every disagreement is printed. One trap is handled here: for GPT-5 class models litellm's
`max_input_tokens` is the window minus the output, so the window is their sum where genai-prices says so.

A row is kept once per model; a `provider/name` row only where that provider differs from it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from datetime import date
from pathlib import Path
from typing import Any

from leporello.models.facts import candidates, fold, provider_name, region_of, vendor_of

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src" / "leporello" / "models" / "table.json"
DATA_FILE = "litellm/model_prices_and_context_window_backup.json"
MODES = {"chat", "responses", "completion"}

# Who sets the price: the row of a model without a provider comes from the first of these that lists it.
FIRST_PARTY = (
    "anthropic", "openai", "gemini", "deepseek", "mistral", "xai", "zai", "moonshot", "dashscope", "minimax",
    "cohere", "ai21", "nvidia", "tencent", "volcengine",
)  # fmt: skip

# The same company under several of litellm's names; the first kept wins.
SAME_PROVIDER = {
    "bedrock_converse": "bedrock",
    "bedrock_mantle": "bedrock",
    "azure_ai": "azure",
    "azure_text": "azure",
    "cohere_chat": "cohere",
    "text-completion-openai": "openai",
    "chatgpt": "chatgpt",
}

_STEP = re.compile(r"^input_cost_per_token_above_(\d+)k_tokens$")


def main() -> int:
    """Fetch, build, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--litellm", type=Path, help="a litellm wheel that is already here")
    parser.add_argument("--genai", type=Path, help="a folder into which genai-prices is already installed")
    parser.add_argument("--as-of", default=date.today().isoformat(), help="the date written into the table")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the table would change")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel = arguments.litellm or fetch_litellm(Path(folder))
        genai = arguments.genai or fetch_genai(Path(folder))
        source = read_litellm(wheel)
        opinion = read_genai(genai)
    rows, remarks = build(source, opinion)
    for remark in remarks:
        print(remark, file=sys.stderr)
    text = render(rows, arguments.as_of, wheel.name.split("-")[1])
    changed = not TABLE.exists() or TABLE.read_text() != text
    if not arguments.check:
        TABLE.write_text(text)
    print(f"{len(rows)} rows, {len(text) / 1024:.0f} KB, data of {arguments.as_of}{', changed' if changed else ''}")
    return 1 if arguments.check and changed else 0


def fetch_litellm(folder: Path) -> Path:
    """The newest wheel, without its dependencies: only one data file of it is wanted."""
    _pip("download", "--no-deps", "--only-binary", ":all:", "-d", str(folder), "litellm")
    return next(folder.glob("litellm-*.whl"))


def fetch_genai(folder: Path) -> Path:
    """genai-prices with what it needs to be imported."""
    target = folder / "genai"
    _pip("install", "--target", str(target), "genai-prices")
    return target


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "-q", *arguments], check=True)


def read_litellm(wheel: Path) -> dict[str, dict[str, Any]]:
    """The raw rows of models that chat."""
    with zipfile.ZipFile(wheel) as archive:
        data = json.loads(archive.read(DATA_FILE))
    return {name: row for name, row in data.items() if row.get("mode") in MODES}


def read_genai(folder: Path) -> dict[str, dict[str, Any]]:
    """Window and base prices by `provider/folded name`, read in a process of its own."""
    program = (
        "import json, sys\n"
        "from datetime import datetime, timezone\n"
        "from genai_prices.data import providers\n"
        "now = datetime.now(timezone.utc)\n"
        "def plain(p):\n"
        "    base = getattr(p, 'base', p)\n"
        "    return None if base is None else float(base)\n"
        "out = []\n"
        "for provider in providers:\n"
        "    for model in provider.models:\n"
        "        prices = model.get_prices(now)\n"
        "        out.append([provider.id, model.id, model.context_window, plain(prices.input_mtok),\n"
        "                    plain(prices.output_mtok), plain(prices.cache_read_mtok)])\n"
        "json.dump(out, sys.stdout)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, env={"PYTHONPATH": str(folder)}
    )
    found: dict[str, dict[str, Any]] = {}
    for provider, name, window, price_in, price_out, read in json.loads(done.stdout):
        key = f"{provider_name(provider)}/{fold(name)}"
        found.setdefault(key, {"window": window, "input": price_in, "output": price_out, "read": read})
    return found


def build(
    source: dict[str, dict[str, Any]], opinion: dict[str, dict[str, Any]]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """All rows, and what the two sources disagree about."""
    listed: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for name, raw in source.items():
        row = _row(raw)
        if row is not None:
            listed[fold(name)].setdefault(_provider(name, raw), row)
    split = _split_windows(listed, opinion)
    remarks: list[str] = []
    rows: dict[str, dict[str, Any]] = {}
    for key, by_provider in listed.items():
        for provider, row in by_provider.items():
            _join_window(key, row, split)
            remarks += _disagreements(f"{provider}/{key}", row, opinion)
        rows[key] = _own_row(by_provider)
        for provider, row in by_provider.items():
            if row != rows[key]:
                rows[f"{provider}/{key}"] = row
    return _without_repeats(rows), remarks


def _split_windows(
    listed: dict[str, dict[str, dict[str, Any]]], opinion: dict[str, dict[str, Any]]
) -> set[tuple[int, int]]:
    """Pairs of largest input and output whose sum genai-prices gives as the window of some OpenAI model."""
    found = set()
    for key, by_provider in listed.items():
        other = opinion.get(f"openai/{key}")
        row = by_provider.get("openai")
        if row and other and other["window"] and row["window"] + row.get("max_output", 0) == other["window"]:
            found.add((row["window"], row["max_output"]))
    return found


def _join_window(key: str, row: dict[str, Any], split: set[tuple[int, int]]) -> None:
    pair = row["window"], row.get("max_output", 0)
    if vendor_of(key) == "openai" and pair in split:
        row["max_input"], row["window"] = pair[0], sum(pair)


def _provider(name: str, raw: dict[str, Any]) -> str:
    provider = str(raw.get("litellm_provider", ""))
    if provider.startswith("vertex_ai"):
        provider = "vertex_ai"
    provider = provider_name(SAME_PROVIDER.get(provider, provider))
    region = region_of(name)
    return f"{provider}.{region}" if region else provider


def _row(raw: dict[str, Any]) -> dict[str, Any] | None:
    window = _number(raw.get("max_input_tokens")) or _number(raw.get("max_tokens"))
    if not window:
        return None
    row: dict[str, Any] = {"window": window}
    if output := _number(raw.get("max_output_tokens")):
        row["max_output"] = output
    steps = _steps(raw)
    prices = _prices(raw, "") or (steps.pop(0)[1] if steps and steps[0][0] == 0 else None)
    if prices:
        row["prices"] = prices
        if steps:
            row["steps"] = [step for step in steps if step[0] < window]
    if minimum := _number(raw.get("prompt_cache_min_tokens")):
        row["cache_min"] = minimum
    return row


def _steps(raw: dict[str, Any]) -> list[list[Any]]:
    """Prices that begin above so many tokens, in both of litellm's spellings."""
    steps = []
    for field in raw:
        if (found := _STEP.match(field)) and (prices := _prices(raw, f"_above_{found[1]}k_tokens")):
            steps.append([int(found[1]) * 1_000, prices])
    for tier in raw.get("tiered_pricing", ()):
        if "range" in tier and (prices := _prices(tier, "")):
            steps.append([int(tier["range"][0]), prices])
    return sorted(steps)


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float | str) and str(value).replace(".", "").isdigit() else 0


def _prices(raw: dict[str, Any], suffix: str) -> list[float | None] | None:
    """Input, output, cache read, cache write 5m, cache write 1h in USD per million, trailing unknowns cut off."""
    fields = (
        f"input_cost_per_token{suffix}",
        f"output_cost_per_token{suffix}",
        f"cache_read_input_token_cost{suffix}",
        f"cache_creation_input_token_cost{suffix}",
        f"cache_creation_input_token_cost_above_1hr{suffix}",
    )
    values = [_per_million(raw.get(field)) for field in fields]
    if values[0] is None or values[1] is None or (values[0] == 0 and values[1] == 0):
        return None
    while values[-1] is None:
        values.pop()
    return values


def _per_million(value: Any) -> float | None:
    return round(value * 1_000_000, 6) if isinstance(value, int | float) else None


def _disagreements(key: str, row: dict[str, Any], opinion: dict[str, dict[str, Any]]) -> list[str]:
    """What genai-prices says otherwise about this very provider and model."""
    other = opinion.get(key)
    if other is None:
        return []
    mine = dict(zip(("input", "output", "read"), row.get("prices", ()), strict=False))
    mine["window"] = row["window"]
    return [
        f"{key}: {field} {value:g} here, {other[field]:g} in genai-prices"
        for field, value in mine.items()
        if value is not None
        and other[field] is not None
        and abs(value - other[field]) > 0.01 * max(value, other[field])
    ]


def _own_row(by_provider: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The row for a model named without a provider."""
    for provider in FIRST_PARTY:
        if provider in by_provider:
            return by_provider[provider]
    # Open weights: the largest window that at least half of the hosts serve, and no price: each host has its own.
    windows = sorted((row["window"] for row in by_provider.values()), reverse=True)
    window = windows[(len(windows) - 1) // 2]
    if len(by_provider) == 1:
        return next(iter(by_provider.values()))
    chosen = next(row for row in by_provider.values() if row["window"] == window)
    return {field: value for field, value in chosen.items() if field not in ("prices", "steps")}


def _without_repeats(rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Drops dated and tagged names whose row equals that of a shorter name they fall back to anyway."""
    kept = dict(rows)
    for key in sorted(rows, key=len, reverse=True):
        provider, slash, name = key.rpartition("/")
        for shorter in list(candidates(name))[1:]:
            fallback = kept.get(f"{provider}/{shorter}") if slash else None
            fallback = fallback or kept.get(shorter)
            if fallback is not None:
                if fallback == rows[key]:
                    del kept[key]
                break
    return kept


def render(rows: dict[str, dict[str, Any]], as_of: str, version: str) -> str:
    """One row per line, sorted, so that a difference can be read."""
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(rows[key], separators=(',', ':'))}" for key in sorted(rows))
    head = f'{{\n"as_of": "{as_of}",\n"source": "litellm {version}, checked with genai-prices",\n"models": {{\n'
    return head + lines + "\n}\n}\n"


if __name__ == "__main__":
    raise SystemExit(main())
