import http.client
import secrets


def ask(method, path, body=None):
    service = http.client.HTTPConnection("127.0.0.1", 8085, timeout=3)
    service.request(method, path, body)
    answer = service.getresponse()
    return answer.status, answer.read().decode()


pairs = {"/" + secrets.token_hex(4): secrets.token_hex(9) for _ in range(5)}
for key, value in pairs.items():
    assert ask("GET", key)[0] == 404
    assert ask("PUT", key, value)[0] == 204
for key, value in pairs.items():
    assert ask("GET", key) == (200, value)
