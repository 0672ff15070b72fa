"""The data of the demonstrations."""
