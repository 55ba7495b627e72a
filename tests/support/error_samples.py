"""Bodies of provider errors with their public sources, each annotated with what it means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ERROR_SAMPLES: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("error_samples.json").read_text(encoding="utf-8")
)
