"""A small embedding server for tests: both dialects, on a port of its own, well or badly behaved as asked."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from holdfast.testing.contracts import HashEmbedder


def well_behaved(path, question):
    """Answer as the real servers do."""
    rows = HashEmbedder().embed_documents(question["input"]).tolist()
    if path == "/api/embed":
        return 200, json.dumps({"model": question["model"], "embeddings": rows}).encode()
    if path == "/v1/embeddings":
        data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
        return 200, json.dumps({"object": "list", "data": data, "model": question["model"]}).encode()
    return 404, b'{"error": "no such path"}'


class EmbeddingServer:
    """Answers with `answer(path, question)`; `None` keeps the caller waiting for as long as the server lives."""

    def __init__(self, answer=well_behaved):
        self.requests = []
        self._answer = answer
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def _handler(self):
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                owner.requests.append((self.path, dict(self.headers), question))
                answer = owner._answer(self.path, question)
                if answer is None:
                    owner._closing.wait()
                    return
                status, body, *headers = answer
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                """Say nothing on the terminal."""

        return Handler

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
