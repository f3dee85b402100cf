"""A file server on this machine's loopback address, which can break off as real ones do."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Serves ``server.files``; ``server.cuts``: after how many bytes a connection is dropped, one each request."""

    def do_GET(self):
        server = self.server
        server.requests.append((self.path, self.headers.get("Range")))
        body = server.files.get(self.path)
        if body is None:
            self.send_error(404)
            return
        start = 0
        wanted = self.headers.get("Range")
        if wanted and server.ranges:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(body):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        if server.lengths:
            self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        cut = server.cuts.pop(0) if server.cuts else None
        self.wfile.write(body[start:] if cut is None else body[start : start + cut])

    def log_message(self, *args):
        pass


@contextmanager
def serving(files):
    """files: path -> bytes. The server keeps its ``requests``; set ``cuts``, ``ranges``, ``lengths`` to spoil it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.cuts, server.requests, server.ranges, server.lengths = dict(files), [], [], True, True
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
