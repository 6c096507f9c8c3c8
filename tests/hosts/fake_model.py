"""A language model that does what it is told: OpenAI's chat completions on the loopback interface, for tests.

The last message of the user decides. `USE_TOOL:name {"argument": …}` in it makes the model call that tool, once; when
the result has come back, or without such a line, the model answers `You said: …` or `The tool said: …`. Every request
is kept in `requests`. Streams when asked to.

`with FakeModel() as model: …` serves in a thread; `python fake_model.py PORT LOG` in a process of its own, and writes
each request to LOG as a line of JSON.
"""

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MODEL = "fake-1"
_TOOL = re.compile(r"USE_TOOL:([\w.-]+) (\{)")


def text_of(content):
    """Return the text of a message's content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or () if isinstance(part, dict))


def wanted_call(text):
    """Return name and arguments of the tool that a text wants called, or None."""
    if (found := _TOOL.search(text)) is None:
        return None
    arguments, _ = json.JSONDecoder().raw_decode(text, found.start(2))
    return found[1], arguments


def reply_to(messages, number):
    """Return the message that answers, and why it ends.

    Hosts may put messages of their own behind a tool's result, so that any result since the user spoke counts.
    """
    spoken = [place for place, one in enumerate(messages) if one["role"] == "user" and not _is_internal(one)]
    last = spoken[-1] if spoken else 0
    results = [text_of(one["content"]) for one in messages[last:] if one["role"] == "tool"]
    said = text_of(messages[last]["content"]) if messages else ""
    call = wanted_call(said)
    if call is not None and not results:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        calls = [{"id": f"call_{number}", "type": "function", "function": function}]
        return {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"
    answer = f"The tool said: {results[-1]}" if results else f"You said: {said}"
    return {"role": "assistant", "content": answer}, "stop"


def _is_internal(message):
    return "INTERNAL_CONTEXT" in text_of(message["content"])


class FakeModel:
    """The model as a server; `url` is what a host gets as the base address."""

    def __init__(self, port=0, log=None):
        self.requests = []
        self._log = log
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), type("Handler", (_Handler,), {"model": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def keep(self, request):
        """Keep a request; return its number, from 1."""
        with self._lock:
            self.requests.append(request)
            if self._log is not None:
                with self._log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(request) + "\n")
            return len(self.requests)

    def serve(self):
        """Answer until the process ends."""
        self._server.serve_forever(poll_interval=0.05)

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: FakeModel

    def log_message(self, *_):
        pass

    def do_GET(self):
        self._answer(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if not self.path.endswith("/chat/completions"):
            self._answer(404, {"error": {"message": f"there is no {self.path} here"}})
            return
        number = self.model.keep(request)
        message, reason = reply_to(request["messages"], number)
        usage = {"prompt_tokens": len(json.dumps(request["messages"])) // 4, "completion_tokens": 8}
        usage["total_tokens"] = sum(usage.values())
        head = {"id": f"chat-{number}", "created": 0, "model": request.get("model", MODEL)}
        if request.get("stream"):
            self._stream({**head, "object": "chat.completion.chunk"}, message, reason, usage)
            return
        choice = {"index": 0, "message": message, "finish_reason": reason}
        self._answer(200, {**head, "object": "chat.completion", "choices": [choice], "usage": usage})

    def _answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, head, message, reason, usage):
        calls = [{"index": place, **one} for place, one in enumerate(message.get("tool_calls", ()))]
        delta = {**message, "tool_calls": calls} if calls else message
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for choices, more in (
            ([{"index": 0, "delta": delta, "finish_reason": None}], {}),
            ([{"index": 0, "delta": {}, "finish_reason": reason}], {}),
            ([], {"usage": usage}),
        ):
            self.wfile.write(b"data: " + json.dumps({**head, "choices": choices, **more}).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True


if __name__ == "__main__":
    FakeModel(int(sys.argv[1]), Path(sys.argv[2])).serve()
