"""Recall inside the proxy: the model is offered the recovery tools, and its calls to them are answered here.

The client never sees those calls. Its answer is woven of the answers of several calls of the model: `offer` says when
the tools stand in a request, `chat`, `claude` and `responses` weave one answer in each dialect, `asides` keeps what the
model asked beside calls of the client's own tools, `exchange` runs the rounds.
"""
