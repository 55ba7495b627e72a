"""What several test folders share: strategies, questions to a compacted list, wire rules, error samples."""
