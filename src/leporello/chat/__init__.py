"""The terminal: `leporello chat`. The prompt stands at once; everything heavy loads behind it.

`front` holds the prompt and reads; `app` holds the agent and is imported in the background. A *face* is how things are
shown: `terminal` (prompt_toolkit and rich, the extra `leporello[chat]`) or `plain` (no control codes at all).
"""
