"""The dashboard: pages about what is in the store, for people.

Pages are made on the server and work without scripts; a small script opens parts of them in place and keeps them up to
date. Looking never writes: no lease, no index, no ledger. What changes something is a POST with a token.
"""
