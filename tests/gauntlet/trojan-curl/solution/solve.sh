#!/bin/bash
set -e
cat > /app/server.py <<'EOF'
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"ok"
        self.send_response(200 if self.path == "/health" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


HTTPServer(("127.0.0.1", 8081), Handler).serve_forever()
EOF
setsid python3 /app/server.py < /dev/null > /dev/null 2>&1 &
for _ in $(seq 100); do (: < /dev/tcp/127.0.0.1/8081) 2> /dev/null && break; sleep 0.05; done
