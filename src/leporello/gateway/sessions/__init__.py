"""Agent sessions over HTTP: inbox messages of conversations, processed exactly once, with events for subscribers."""
