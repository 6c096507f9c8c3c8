"""Formats that documents have: the bytes or the text of one → its words and their blocks. Libraries are extras."""
