"""Records as people and programs see them: texts safe for a terminal, JSON, Markdown, pages of a conversation."""
