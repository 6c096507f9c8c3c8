"""A second process on the same file: does what each line of its standard input says, and answers in one line."""

import json
import sys

from holdfast import Memory, Settings

with Memory.open(sys.argv[1], settings=Settings.load().without_timeouts()) as memory:
    for line in sys.stdin:
        verb, argument = json.loads(line)
        if verb == "remember":
            answer = [item.status for item in memory.remember(argument, user="ana", session="shared")]
        elif verb == "update":
            answer = memory.update(argument[0], user="ana", text=argument[1]).version
        else:
            answer = [hit.unit.text for hit in memory.search(argument, user="ana")]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
