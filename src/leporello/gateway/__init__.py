"""The gateway: a server that other clients and people's programs talk to.

- The *proxy* speaks the three model APIs. A client points its `base_url` at it; conversations that outgrow the window
  are folded on the way, and everything else passes as it came.
- *Agent sessions* run Leporello's own agent over HTTP.

The work of folding is done in threads; the event loop only moves bytes.
"""
