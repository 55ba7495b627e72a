"""The agent: a system prompt, a loop, and the tools it may use."""
