"""When to compact, how deep, and at what price: everybody asks here, nobody else decides. Pure."""
