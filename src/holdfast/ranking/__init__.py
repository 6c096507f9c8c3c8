"""Hits → ordered candidates. Pure: values in, new values out."""
