"""Measuring on recorded sessions: what is still known after compaction (`exam`), and what a session costs."""
