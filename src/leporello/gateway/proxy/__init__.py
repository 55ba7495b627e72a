"""The proxy: a client's request in, rewritten, sent, recovered when it is too long.

Its answer relayed as it comes.
"""
