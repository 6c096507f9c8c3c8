"""The interfaces of other memories, over a `Memory`: programs written for them run without another line changed."""
