"""Does a text support a claim? Reading both, finding the passages that speak of the same, comparing what they say."""
