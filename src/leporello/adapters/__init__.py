"""Leporello inside other people's hosts and frameworks. Each file stands alone and imports its framework by itself.

hermes          the engines as a plugin of Hermes
langchain       middleware for LangChain agents and LangGraph
openai_agents   a session for the OpenAI Agents SDK
pydantic_ai     a history processor for Pydantic AI
"""
