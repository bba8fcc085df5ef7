# termsmith-canary 35f58025-39a7-494b-a29b-b37e6c217f52
"""Asks the running service for things that nobody could have prepared for."""

import functools
import http.client
import json
import random
import threading
import time

import subject
from subject import pristine, read_bytes, run

HOST, PORT = "127.0.0.1", 8470
PATIENCE = 4  # seconds for the service to come up
MAX_BODY = 1 << 20
RNG = random.SystemRandom()
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-"


@functools.cache
def is_up():
    """The service answers; without a clean room, which brings it up, it is started here."""
    if not subject.RELAY:
        run(["bash", "/app/start.sh"])
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            exchange("GET", "/counters")
            return True
        except (AssertionError, http.client.HTTPException):
            return True
        except OSError:
            time.sleep(0.1)
    return False


def exchange(method, path, body=None):
    connection = http.client.HTTPConnection(HOST, PORT, timeout=5)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        content = answer.read(MAX_BODY)
        want = None if answer.status == 204 else str(len(content))
        assert answer.getheader("Content-Length") == want, f"{method} {path}: {answer.getheader('Content-Length')} is the length of {content[:80]!r}"
        return answer.status, answer.getheader("Content-Type"), content
    finally:
        connection.close()


def ask(method, path, body=None):
    """Status and JSON of an answer; None where the status promises no JSON."""
    assert is_up(), f"nothing answers on port {PORT}"
    try:
        status, kind, content = exchange(method, path, body)
        value = json.loads(content) if status in (200, 201) else None
    except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
        raise AssertionError(f"{method} {path}: {error!r}") from None
    assert value is None or (kind or "").split(";")[0].strip() == "application/json", f"{method} {path} has the type {kind}"
    return status, value


def add(name, by):
    return ask("POST", f"/counters/{name}", json.dumps({"by": by}))


def fresh(length=16):
    """A name that nobody has used."""
    return "".join(RNG.choice(LETTERS) for _ in range(length))


def says(name, value, status=200):
    """What an answer about this counter must be."""
    return status, {"name": name, "value": value}


def test_seed_is_served():
    """Every counter of the seed has its value."""
    for name, value in json.loads(pristine("app/seed.json").read_text()).items():
        assert ask("GET", f"/counters/{name}") == says(name, value), f"{name} is not {value}"


def test_seed_file_is_untouched():
    """The file of the seed is as it was."""
    assert read_bytes("/app/seed.json") == pristine("app/seed.json").read_bytes(), "/app/seed.json was changed"


def test_unknown_counters():
    """A counter that is not there is not found, neither to read nor to delete, and reading does not make it."""
    name = fresh()
    for method in ["GET", "DELETE", "GET"]:
        assert ask(method, f"/counters/{name}") == (404, None), f"{method} of an unknown counter"


def test_counters_are_made():
    """The first addition makes a counter, with status 201; also one of zero."""
    for by in [RNG.randrange(1, 10**6), 0]:
        name = fresh()
        assert add(name, by) == says(name, by, 201), f"a first addition of {by}"
        assert ask("GET", f"/counters/{name}") == says(name, by), f"after a first addition of {by}"


def test_counters_add_up():
    """Additions and subtractions add up, each answered with the new value."""
    name, value = fresh(), 1000
    add(name, value)
    for _ in range(8):
        by = RNG.randrange(-120, 500)
        value += by
        assert add(name, by) == says(name, value), f"adding {by}"
    assert add(name, 10**15) == says(name, value + 10**15), "a large number"
    assert ask("GET", f"/counters/{name}") == says(name, value + 10**15), "reading again"


def test_counters_are_apart():
    """An addition changes one counter and no other."""
    first, second = fresh(), fresh()
    add(first, 5)
    add(second, 7)
    add(first, 1)
    assert ask("GET", f"/counters/{second}") == says(second, 7), "the other counter has changed"


def test_never_negative():
    """A value may fall to 0 and not below: 409, and nothing has changed."""
    name, value = fresh(), RNG.randrange(5, 500)
    add(name, value)
    assert add(name, -value - 1) == (409, None), "below 0"
    assert ask("GET", f"/counters/{name}") == says(name, value), "a refused subtraction changed the value"
    assert add(name, -value) == says(name, 0), "down to 0"
    assert add(name, -1) == (409, None), "below 0 from 0"


def test_refused_counters_are_not_made():
    """A counter whose first addition is refused is not there."""
    name = fresh()
    assert add(name, -RNG.randrange(1, 50)) == (409, None), "a new counter below 0"
    assert ask("GET", f"/counters/{name}") == (404, None), "it was made all the same"


def test_bad_bodies():
    """A body that is not an object with the integer `by` alone gives 400 and changes nothing."""
    name = fresh()
    add(name, 3)
    bodies = ["", "{}", "[1]", "5", '"by"', "null", '{"by": "1"}', '{"by": true}', '{"by": 2.0}', '{"by": null}', '{"by": 1, "to": 2}', '{"add": 1}', '{"by": 1', "{by: 1}"]
    for body in bodies:
        assert ask("POST", f"/counters/{name}", body) == (400, None), f"the body {body!r}"
    assert ask("GET", f"/counters/{name}") == says(name, 3), "a bad body changed the value"


def test_bad_names():
    """Names that break the rule give 400 with every method."""
    for name in ["Bolts", "a_b", "a.b", "a%20b", "caf%C3%A9", fresh(21), "a~", "A"]:
        for method, body in [("GET", None), ("POST", '{"by": 1}'), ("DELETE", None)]:
            assert ask(method, f"/counters/{name}", body) == (400, None), f"{method} of {name!r}"
    # A name that breaks the rule, or another path: both can be meant.
    for name in ["", "x/y"]:
        for method, body in [("GET", None), ("POST", '{"by": 1}'), ("DELETE", None)]:
            assert ask(method, f"/counters/{name}", body) in [(400, None), (404, None)], f"{method} of {name!r}"


def test_bad_names_are_not_made():
    """After a POST that was refused for its name or path there is no counter of such a name."""
    for path in ["/counters/Bad", "/counters/", f"/{fresh()}", "/counters/a.b"]:
        status, _ = ask("POST", path, '{"by": 1}')
        assert status in (400, 404), f"POST {path}"
    status, found = ask("GET", "/counters")
    assert status == 200 and isinstance(found, dict), f"status {status} of the list"
    bad = [name for name in found if not 1 <= len(name) <= 20 or set(name) - set(LETTERS) or name == "null"]
    assert bad == [], f"counters with bad names: {bad}"


def test_names_of_all_lengths():
    """Names of 1 to 20 characters, of letters, digits and hyphens, are good."""
    for name in [RNG.choice("qxz") + "-9", "-" * 7 + fresh(3), fresh(20), fresh(19), RNG.choice(LETTERS)]:
        before = ask("GET", f"/counters/{name}")
        had = before[1]["value"] if before[0] == 200 else None
        assert add(name, 4) == says(name, 4 + (had or 0), 201 if had is None else 200), f"the name {name!r}"


def test_deleted_counters_are_gone():
    """DELETE answers 204 once, then 404; a new addition begins at 0."""
    for value in [9, 0]:
        name = fresh()
        add(name, value)
        assert ask("DELETE", f"/counters/{name}") == (204, None), f"deleting a counter of {value}"
        assert ask("GET", f"/counters/{name}") == (404, None), "it is still there"
        assert ask("DELETE", f"/counters/{name}") == (404, None), "deleting it again"
        assert add(name, 2) == says(name, 2, 201), "making it again"


def test_all_counters():
    """The list has the seed and what was made, with present values, and not what is gone."""
    kept, gone = fresh(), fresh()
    add(kept, 11)
    add(gone, 12)
    add(kept, 1)
    ask("DELETE", f"/counters/{gone}")
    status, found = ask("GET", "/counters")
    assert status == 200 and isinstance(found, dict), f"status {status} of the list"
    want = {**json.loads(pristine("app/seed.json").read_text()), kept: 12}
    assert {name: found.get(name) for name in want} == want, "the list has other values"
    assert gone not in found, "the list has a counter that was deleted"


def test_other_paths():
    """Other paths are not found."""
    for path in ["/", "/counter", "/countersx", "/v1/counters", f"/{fresh()}"]:
        assert ask("GET", path) == (404, None), f"GET {path}"
    assert ask("POST", f"/{fresh()}", '{"by": 1}') == (404, None), "POST of another path"


def test_clients_at_once():
    """Of additions by four clients at the same time none is lost."""
    name, statuses = fresh(), []
    add(name, 1)

    def client():
        for _ in range(25):
            statuses.append(add(name, 3)[0])

    clients = [threading.Thread(target=client) for _ in range(4)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    assert statuses == [200] * 100, f"{len(statuses)} of 100 additions were answered"
    assert ask("GET", f"/counters/{name}") == says(name, 301), "additions were lost"
