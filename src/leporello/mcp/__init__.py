"""Recall for MCP clients: every stored conversation can be searched, described, reopened, added to and folded.

service   what can be asked of a store; plain functions, no protocol
server    the same as tools and resources of the official SDK
"""
