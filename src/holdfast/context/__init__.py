"""Rules, recent turns and recalled units → one text that fits its budget (C15, C16); `candidates` looks them up."""
