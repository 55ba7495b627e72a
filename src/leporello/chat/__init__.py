"""The terminal: `leporello chat`. The prompt stands at once; everything heavy loads behind it.

`repl` reads from the prompt; `app` holds the agent and is imported in the background. There are two user interfaces:
`terminal` (prompt_toolkit and rich, the extra `leporello[chat]`) and `plain` (no control codes at all).
"""
