"""Where a list can be cut."""


def tail_start(messages, budget):
    """The first message of the newest ones that fit, never between a call and its result."""
    start = len(messages)
    used = 0
    for index in range(len(messages) - 1, -1, -1):
        used += len(str(messages[index]))
        if used > budget and start < len(messages):
            break
        if messages[index].get("role") != "tool":
            start = index
    return start
