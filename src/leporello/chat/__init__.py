"""The terminal: `leporello chat`. The prompt appears at once; everything heavy is imported in the background.

`repl` reads from the prompt; `app` holds the agent and is imported in the background. There are two user interfaces:
`terminal` (prompt_toolkit and rich, the extra `leporello[chat]`) and `plain` (no control codes at all).
"""
