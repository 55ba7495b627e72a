"""Recall inside the proxy: the model is offered the recovery tools, and its calls to them are answered here.

The client never sees those calls. `tool_offer` says when the tools stand in a request, and puts back what the model
asked beside calls of the client's own tools; `tool_loop` calls the model until it speaks to the client, and merges its
answers into one (`leporello.dialects.dialect`).
"""
