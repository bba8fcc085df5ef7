import json
import re
from http.server import BaseHTTPRequestHandler, HTTPServer

NAME = re.compile(r"[a-z0-9-]{1,20}")
PREFIX = "/counters/"
counters = json.load(open("/app/seed.json"))


class Handler(BaseHTTPRequestHandler):
    def answer(self, status, value=None):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        if value is not None:
            self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def name(self):
        """The counter that is asked for; None when the request has been answered."""
        if not self.path.startswith(PREFIX):
            return self.answer(404)
        name = self.path[len(PREFIX):]
        if not NAME.fullmatch(name):
            return self.answer(400)
        return name

    def do_GET(self):
        if self.path == "/counters":
            return self.answer(200, counters)
        name = self.name()
        if name is not None:
            if name in counters:
                self.answer(200, {"name": name, "value": counters[name]})
            else:
                self.answer(404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        name = self.name()
        if name is None:
            return
        try:
            wish = json.loads(body)
        except ValueError:
            wish = None
        if not isinstance(wish, dict) or set(wish) != {"by"} or type(wish["by"]) is not int:
            return self.answer(400)
        value = counters.get(name, 0) + wish["by"]
        if value < 0:
            return self.answer(409)
        status = 200 if name in counters else 201
        counters[name] = value
        self.answer(status, {"name": name, "value": value})

    def do_DELETE(self):
        name = self.name()
        if name is not None:
            self.answer(404 if counters.pop(name, None) is None else 204)

    def log_message(self, *_):
        pass


# One request after the other: no two of them can add at once.
HTTPServer(("127.0.0.1", 8470), Handler).serve_forever()
