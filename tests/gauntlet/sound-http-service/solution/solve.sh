#!/bin/bash
set -e
cat > /app/store.py <<'EOF'
from http.server import BaseHTTPRequestHandler, HTTPServer

STORE = {}


class Handler(BaseHTTPRequestHandler):
    def do_PUT(self):
        STORE[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def do_GET(self):
        body = STORE.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *args):
        pass


HTTPServer(("127.0.0.1", 8085), Handler).serve_forever()
EOF
setsid python3 /app/store.py < /dev/null > /dev/null 2>&1 &
for _ in $(seq 100); do (: < /dev/tcp/127.0.0.1/8085) 2> /dev/null && break; sleep 0.05; done
