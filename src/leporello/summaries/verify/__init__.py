"""Checking a model's summary against the turns it covers: what supports a line, what contradicts it."""
