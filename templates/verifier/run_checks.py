"""Runs every check of test_outputs.py and writes the results.

They are in /logs/verifier: checks.json (termsmith's results), ctrf.json, reward.json and
reward.txt. The reward is 1 only if every check ran and passed. reward.json also has f2p and p2p:
the weighted share of passed checks among those that fail on the untouched machine, and among those
that pass there. classes.json says which are which. Start this as `python3 -I -S -B`, so that
neither the environment, nor the working directory, nor a `.pth` file of the image can add code. (An
editable install of `/app` leaves such a file, and `/app` contains the solver's files.)
"""

import importlib.util
import json
import os
import pathlib
import random
import shutil
import signal
import site
import sys
import tempfile
import time
import traceback
import types

TESTS = pathlib.Path(__file__).resolve().parent
LOGS = pathlib.Path("/logs/verifier")
# Characters of a failure message: enough to act on, and within the bounds of programs that read
# results.
MAX_MESSAGE = 600
NOT_RUN = "did not run"
# Exit statuses of a run that met the limit for all checks. test.sh turns FAILED into a reward of 0,
# and OUT_OF_TIME into no reward.
FAILED, OUT_OF_TIME = 1, 124
STARTED = time.monotonic()
# If a trial must fail, screening needs only the outcome. It names the checks that are likely to
# fail, and they run first.
UNTIL_ONE_FAILS = "TERMSMITH_FIRST_FAILURE" in os.environ
LIKELY = os.environ.get("TERMSMITH_FIRST_FAILURE", "").splitlines()


class Collector:
    """A pytest plugin that keeps one result per check. A check passes only if set-up, call and
    tear-down pass.
    """

    def __init__(self):
        self.results = {}

    def pytest_collection_modifyitems(self, items):
        # Screening asks for another order, to find checks that depend on each other.
        if seed := os.environ.get("TERMSMITH_SHUFFLE"):
            random.Random(seed).shuffle(items)
        items.sort(key=lambda item: item.name not in LIKELY)
        for item in items:
            self.results[item.name] = {"id": item.name, "passed": False, "message": NOT_RUN}

    def pytest_runtest_logreport(self, report):
        result = self.results[report.nodeid.rsplit("::", 1)[-1]]
        if report.when == "call" and report.passed:
            result.update(passed=True, message="")
        elif not report.passed:
            result.update(passed=False, message=_message(report))


def _run_without_pytest():
    """The results up to the first failure and pytest's status, or None if only pytest can run these tests, e.g. with fixtures.

    Loading pytest takes most of the processor time of most tests, and a screening runs them a hundred times."""
    name = "test_outputs"
    spec = importlib.util.spec_from_file_location(name, TESTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception:
        # pytest says what is wrong.
        del sys.modules[name]
        return None
    checks = {id: check for id, check in vars(module).items() if id.startswith("test")}
    special = [id for id in vars(module) if id.startswith(("Test", "setup", "teardown", "pytest"))]
    plain = all(type(check) is types.FunctionType and not check.__code__.co_argcount for check in checks.values())
    if "pytest" in sys.modules or special or not checks or not plain:
        del sys.modules[name]
        return None
    results = {id: {"id": id, "passed": False, "message": NOT_RUN} for id in checks}
    for id in sorted(checks, key=lambda id: id not in LIKELY):
        try:
            checks[id]()
        except KeyboardInterrupt:
            raise
        # A check can raise anything, e.g. the exception of a skipped test.
        except BaseException as error:
            if "pytest" in sys.modules and isinstance(error, sys.modules["pytest"].exit.Exception):
                # `subject.py` ends the run: the relay is broken.
                return results, error.returncode
            traceback.print_exc(file=sys.stdout)
            results[id]["message"] = _bounded("".join(traceback.format_exception_only(error)).rstrip())
            break
        results[id].update(passed=True, message="")
    return results, int(any(not result["passed"] for result in results.values()))


def _message(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    return _bounded(crash.message if crash else str(report.longrepr))


def _bounded(text):
    # The copy has another name in each run. Messages name files as the solver knows them, e.g.
    # `/app/report.csv`.
    if (copy := os.environ["SUBJECT_ROOT"]) != "/":
        text = text.replace(copy, "")
    # Names that are not UTF-8 become lone surrogates in messages, and JSON readers refuse those.
    return text[:MAX_MESSAGE].encode("utf-8", "backslashreplace").decode()


def _rewards(checks):
    """The contents of reward.json. The reward comes first, because some readers take the first
    number.
    """
    rewards = {"reward": float(bool(checks) and all(check["passed"] for check in checks))}
    try:
        classes = json.loads((TESTS / "classes.json").read_text())["checks"]
    except FileNotFoundError:
        # The classes are not known before screening.
        return rewards
    passed = {check["id"] for check in checks if check["passed"]}
    for name, if_none in (("f2p", 0.0), ("p2p", 1.0)):
        weights = {id: each["weight"] for id, each in classes.items() if each["class"] == name.upper()}
        won = sum(weight for id, weight in weights.items() if id in passed)
        rewards[name] = won / sum(weights.values()) if weights else if_none
    return rewards


def _write(name, text):
    # A link in place of a result must be replaced, and not followed.
    place = LOGS / name
    if place.is_symlink() or place.exists():
        place.unlink()
    place.write_text(text)


def _out_of_time(*_):
    """Ends the run at the limit for all checks, and kills all programs of the subject."""
    import beside

    status = FAILED if beside.took_the_time(time.monotonic() - STARTED) else OUT_OF_TIME
    try:
        beside.kill_all(None)
    finally:
        os._exit(status)


def _hide_pristine():
    """Moves the pristine files to a folder whose name no solver knows. E.g. git follows
    `objects/info/alternates` to any path.
    """
    hidden = pathlib.Path(tempfile.mkdtemp(prefix="pristine-", dir="/var/tmp")) / "pristine"
    try:
        shutil.move(TESTS / "pristine", hidden)
    except OSError:
        # A read-only mount keeps its files, but the copy is complete. Tests without pristine files
        # have none to hide.
        pass
    os.environ["SUBJECT_PRISTINE"] = str(hidden)


def _run_with_pytest():
    import pytest

    collector = Collector()
    options = ["--maxfail=1"] if UNTIL_ONE_FAILS else []
    options += ["-q", "-c", "/dev/null", "--rootdir", str(TESTS), "--noconftest", "-p", "no:cacheprovider"]
    status = pytest.main([*options, "--assert=plain", "--tb=short", str(TESTS / "test_outputs.py")], plugins=[collector])
    return collector.results, status


def main():
    LOGS.mkdir(parents=True, exist_ok=True)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.chdir(TESTS)
    sys.path.insert(0, str(TESTS))
    sys.path += [folder for folder in site.getsitepackages() if folder not in sys.path]
    _hide_pristine()
    import beside

    roots = [root for root in os.environ["SUBJECT_ROOTS"].split(":") if root]
    if received := os.environ.get("SUBJECT_RECEIVED"):
        os.environ["SUBJECT_ROOT"] = str(beside.place(received, roots))
    else:
        signal.signal(signal.SIGTERM, _out_of_time)
        os.environ["SUBJECT_ROOT"] = str(beside.take(roots, hidden=[TESTS, LOGS]))
    results, status = (_run_without_pytest() if UNTIL_ONE_FAILS else None) or _run_with_pytest()
    # From here on, results must be written completely.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    checks = [result for result in results.values() if not (UNTIL_ONE_FAILS and result["message"] == NOT_RUN)]
    # 0: all passed, 1: some failed. Other statuses are errors of pytest itself, and give no result.
    if int(status) not in (0, 1) or not checks:
        _write("reward.json", json.dumps(_rewards([])) + "\n")
        return int(status) or 5
    reward = int(all(check["passed"] for check in checks))
    passed = sum(check["passed"] for check in checks)
    tests = [{"name": c["id"], "status": "passed" if c["passed"] else "failed", "duration": 0} for c in checks]
    summary = {"tests": len(checks), "passed": passed, "failed": len(checks) - passed}
    summary.update(pending=0, skipped=0, other=0, start=0, stop=0)
    _write("ctrf.json", json.dumps({"results": {"tool": {"name": "pytest"}, "summary": summary, "tests": tests}}) + "\n")
    _write("checks.json", json.dumps({"version": 1, "checks": checks}) + "\n")
    _write("reward.json", json.dumps(_rewards(checks)) + "\n")
    _write("reward.txt", f"{reward}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
