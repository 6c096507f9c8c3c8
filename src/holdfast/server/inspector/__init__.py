"""The inspector: pages that show a memory to people, made on the server and read in any browser."""
