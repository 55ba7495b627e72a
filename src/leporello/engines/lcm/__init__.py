"""`lcm`: the lossless engine. History as a growing tree of summaries, of which the model sees the frontier.

    raw messages   m4 … m57 │ m58 … m131 │ m132 … m190 │ m191 … m260 │ m261 … (fresh tail, word for word)
    level 1           f1    │     f2     │     f4      │     f5
    level 2        └──────── f3 ────────┘
    frontier                 f3               f4            f5           + state

A compaction adds nodes at the end of the frontier and leaves the others alone, byte for byte; now and then a few old
nodes are merged into one that is coarser. What changes all the time stands behind the nodes.

    tree     which nodes stand: leaves, merges, caps (pure)
    nodes    writing a node: by a model in detail, by a model tersely, without a model
    state    writing what changes: rules, requests, files, and what became important later
    folder   from a plan to a new view
    engine   the `ContextEngine`
"""

from leporello.engines.lcm.engine import LcmEngine

__all__ = ["LcmEngine"]
