"""Calls to models: the port, the official clients behind it, and what their errors mean."""
