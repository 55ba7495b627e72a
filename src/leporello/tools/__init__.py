"""Tools of the agent: what the model may call, and what keeps a call harmless.

`base` holds the shared values, `schema` turns a function into a tool, `toolbox` runs calls. Each tool has a file of its
own; `budget` decides how much of a result the model gets to see.
"""
