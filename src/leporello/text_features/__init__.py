"""Pure readers of text: its words, and how well they answer a query."""
