"""The three ways to a model, as they are told to somebody who has none."""

from __future__ import annotations

WAYS = """\
Three ways to a model:

  a key          leporello setup asks for provider, model and key, tries them and keeps them
                 (or set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY,
                 then: leporello chat --model NAME)
  your server    anything that speaks OpenAI's or Anthropic's API (llama.cpp, Ollama, vLLM):
                 leporello setup --base-url http://127.0.0.1:8080/v1 --model NAME
                 (or, for once: leporello --set model.base_url=URL chat --model NAME)
  no key at all  a small model on this machine, fetched once (about 130 MB):
                 leporello setup --local, then: leporello chat --model local

To see what a chat looks like without any of them: leporello chat --model scripted:demo
"""
