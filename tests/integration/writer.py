"""A process that writes batches and acknowledges each over its standard output; the tests kill it."""

import json
import sys

from holdfast import Memory, Settings

path, seed = sys.argv[1], sys.argv[2]
with Memory.open(path, settings=Settings.load().without_timeouts()) as memory:
    for number in range(10_000):
        size = 1 + (number * 7 + int(seed)) % 9
        batch = f"{seed}-{number}"
        messages = [
            {"role": "user", "content": f"batch {batch} holds marble {i} of {size}", "id": f"{batch}-{i}"}
            for i in range(size)
        ]
        written = memory.remember(messages, user="ana", session=f"s{seed}", metadata={"batch": batch, "size": size})
        sys.stdout.write(json.dumps({"batch": batch, "ids": [item.id for item in written]}) + "\n")
        sys.stdout.flush()
