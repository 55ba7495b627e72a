"""An engine by folder: a class, no register(); written for the original host, with a module of its own."""

from agent.context_engine import ContextEngine

from .cutting import tail_start


class SteadyEngine(ContextEngine):
    threshold_percent = 0.5

    @property
    def name(self):
        return "steady"

    def update_from_response(self, usage):
        self.last_prompt_tokens = usage.get("prompt_tokens", 0)
        self.last_completion_tokens = usage.get("completion_tokens", 0)
        self.last_total_tokens = usage.get("total_tokens", 0)

    def should_compress(self, prompt_tokens=None):
        tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        return tokens >= self.threshold_tokens > 0

    def compress(self, messages, current_tokens=None, focus_topic=None):
        budget = self.context_length // 2
        if len(str(messages)) <= 2 * budget:
            return list(messages)
        self.compression_count += 1
        head = [m for m in messages if m.get("role") in ("system", "developer")]
        newest = max(i for i, m in enumerate(messages) if m.get("role") == "user")
        start = max(1, tail_start(messages, budget))
        tail = messages[start:]
        if newest < start:
            # The request itself stands first; one line says that something between it and the rest is gone.
            while tail and tail[0].get("role") == "user":
                tail = tail[1:]
            return [*head, messages[newest], *tail]
        note = {"role": "assistant", "content": f"({start} earlier messages are left out.)"}
        return [*head, {"role": "user", "content": "(The beginning is left out.)"}, note, *_from_user(tail)]


def _from_user(tail):
    first = next(i for i, m in enumerate(tail) if m.get("role") == "user")
    return [m for m in tail[first:] if m.get("role") not in ("system", "developer")]
