"""Recall: finding in a conversation's past what a question asks for."""
