//! Rows of the rules about tests, scripts and the reference.

use super::{Row, row};

const TEST: &str = "tests/test_outputs.py";
const SCRIPT: &str = "tests/test.sh";
const SOLVE: &str = "solution/solve.sh";

pub(super) const ROWS: &[Row] = &[
    row("skipped-check", &[(TEST, "def test_a():\n    # pytest.skip\n    skip(1)\n")], &[]),
    row(
        "skipped-check",
        &[(TEST, "@pytest.mark.xfail\ndef test_a():\n    pytest.skip('x')\n")],
        &[
            "tests/test_outputs.py:1 a check is skipped or expected to fail",
            "tests/test_outputs.py:3 a check is skipped or expected to fail",
        ],
    ),
    row("generated-check", &[(TEST, "def test_a(): pass\n")], &[]),
    row(
        "generated-check",
        &[(TEST, "@pytest.mark.parametrize('x', [1])\n")],
        &["tests/test_outputs.py:1 checks are generated"],
    ),
    row("undocumented-check", &[(TEST, "def test_a():\n    '''Doc.'''\n\ndef helper():\n    pass\n")], &[]),
    row(
        "undocumented-check",
        &[(TEST, "def test_a():\n    '''Doc.'''\n\ndef test_b(tmp):\n    x = 1\n")],
        &["tests/test_outputs.py:4 1 of 2 checks have no docstring"],
    ),
    row(
        "solver-code-started",
        &[(
            TEST,
            "import subprocess\nfrom subject import path, run\nrun(['python3', '/app/x.py'])\nsubprocess.run(['cat', path('/app/x')])\n",
        )],
        &[],
    ),
    row(
        "solver-code-started",
        &[
            (
                TEST,
                "import os, subprocess\nfrom helper import start\nsubprocess.run(['python3', '/app/x.py'])\nstart()\nopen('/tests/probe.py').read()\n",
            ),
            ("tests/helper.py", "import os\ndef start():\n    os.system('cd /app && make')\n"),
            // A probe starts it beside the solver's programs.
            ("tests/probe.py", "import os\nos.system('/app/x')\n"),
            ("tests/pristine/app/test_x.py", "import os\nos.system('/app/x')\n"),
        ],
        &[
            "tests/helper.py:3 `os.system` runs the solver's code as the user of the tests",
            "tests/test_outputs.py:3 `subprocess.run` runs the solver's code as the user of the tests",
        ],
    ),
    row(
        "solver-code-started",
        &[
            (
                "task.toml",
                "[task]\nname = \"org/a-task\"\n[metadata.termsmith]\nroots = [\"/srv/shop\", \"/usr/lib/shop\"]\n",
            ),
            (
                TEST,
                "import subprocess\nsubprocess.run(['bash', '/app/x'])\nsubprocess.run(['bash', '/srv/shop/x'])\nsubprocess.run(['/usr/bin/git'])\n",
            ),
        ],
        &["tests/test_outputs.py:3 `subprocess.run` runs the solver's code as the user of the tests"],
    ),
    row(
        "unscaled-time-limit",
        &[(
            TEST,
            "PROBE = r'''\n    signal.alarm(5)\nsignal.setitimer(signal.ITIMER_REAL, 2.5)\nsubprocess.run(\n    [a, str(b)],\n    timeout=5,\n)\n'''\np.communicate(timeout=3)\n\
             start = time.monotonic()\nrun(x)\ntook = time.monotonic() - start\nassert took < 2\nassert (time.time() - start) <= 3\n@pytest.mark.timeout(5)\n",
        )],
        &[
            "tests/test_outputs.py:2 a right solution can fail by a limit of 5 s on a busy machine",
            "tests/test_outputs.py:3 a right solution can fail by a limit of 2.5 s on a busy machine",
            "tests/test_outputs.py:6 a right solution can fail by a limit of 5 s on a busy machine",
            "tests/test_outputs.py:9 a right solution can fail by a limit of 3 s on a busy machine",
            "tests/test_outputs.py:13 a right solution can fail by an upper bound of a measured time on a busy machine",
            "tests/test_outputs.py:14 a right solution can fail by an upper bound of a measured time on a busy machine",
            "tests/test_outputs.py:15 a right solution can fail by a limit of 5 s on a busy machine",
        ],
    ),
    row(
        "unscaled-time-limit",
        &[(
            TEST,
            "# signal.alarm(5)\nsignal.alarm(0)\nsignal.alarm(600)\nsignal.setitimer(signal.ITIMER_PROF, 5)\nresource.setrlimit(resource.RLIMIT_CPU, (5, 5))\n\
             subprocess.run(a, timeout=60)\nsubprocess.run(a, timeout=8 * factor)\nsubprocess.run(a)\nrun(b, timeout=5)\nprobe(P, x, timeout=5)\nrun_many(c, timeout=9)\n\
             took = row['duration']\nassert took < 5\nassert duration < 2\nassert time.monotonic() > start\nrun_within(Limit(5), a)\n",
        )],
        &[],
    ),
    row(
        "unscaled-time-limit",
        &[(
            SCRIPT,
            "timeout 5 /app/run\nif ! timeout -k 1 -s KILL 3s ./a; then\n/usr/bin/timeout --signal=TERM 0.5 b\n",
        )],
        &[
            "tests/test.sh:1 a right solution can fail by a limit of 5 s on a busy machine",
            "tests/test.sh:2 a right solution can fail by a limit of 3 s on a busy machine",
            "tests/test.sh:3 a right solution can fail by a limit of 0.5 s on a busy machine",
        ],
    ),
    row(
        "unscaled-time-limit",
        &[(
            SCRIPT,
            "timeout 600 pytest\n# timeout 5 a\ntimeout=5\necho 'timeout 5'\ncurl --timeout 5\n/usr/bin/timeout --preserve-status --kill-after=3 \"$seconds\" a\n",
        )],
        &[],
    ),
    row(
        "undocumented-check",
        &[(TEST, "'''Example:\n\ndef test_x():\n    pass\n'''\ndef test_a():\n    '''Doc.'''\n")],
        &[],
    ),
    row(
        "check-without-assert",
        &[(TEST, "'''\ndef test_x():\n    pass\n'''\ndef test_a():\n    subprocess.run(a, check=True)\n")],
        &[],
    ),
    row(
        "check-without-assert",
        &[(TEST, "def test_a():\n    '''assert b'''\n    # assert c\n    print('raise')\n")],
        &["tests/test_outputs.py:1 `test_a` asserts nothing"],
    ),
    row(
        "few-asserts",
        &[(TEST, "'''\nassert a\nassert b\n'''\nassert c\n")],
        &["tests/test_outputs.py 1 assertions in the whole task"],
    ),
    row("same-check-twice", &[(TEST, "'''\ndef test_a():\n    pass\n'''\ndef test_a():\n    pass\n")], &[]),
    row(
        "existence-only-asserts",
        &[(
            TEST,
            "def test_a():\n    assert os.path.exists('a')\ndef test_b():\n    assert open('a').read() == 'b'\n",
        )],
        &[],
    ),
    row(
        "existence-only-asserts",
        &[(
            TEST,
            "def test_a():\n    assert Path('a').is_file(), 'in it is nothing'\ndef test_b():\n    check(1)\n    assert p.exists()\ndef test_c():\n    assert not os.path.isfile('c')\n",
        )],
        &["tests/test_outputs.py:1 2 of 3 checks only test that something exists"],
    ),
    row("few-asserts", &[(TEST, "assert a\nassert b\nassert(c)\n")], &[]),
    row("few-asserts", &[], &[]),
    row(
        "few-asserts",
        &[(TEST, "assert a\nasserted = 1\n")],
        &["tests/test_outputs.py 1 assertions in the whole task"],
    ),
    row(
        "same-check-twice",
        &[(TEST, "class A:\n  def test_a(): pass\nclass B:\n  def test_a(): pass\n")],
        &[],
    ),
    row(
        "same-check-twice",
        &[(TEST, "def test_a():\n    pass\ndef test_a():\n    pass\n")],
        &["tests/test_outputs.py:3 `test_a` is defined twice"],
    ),
    row(
        "check-without-assert",
        &[(
            TEST,
            "def same(a):\n    assert a\ndef test_a():\n    same(1)\ndef test_b():\n    with pytest.raises(E):\n        f()\n",
        )],
        &[],
    ),
    row(
        "check-without-assert",
        &[(TEST, "def quiet():\n    print(1)\ndef test_a():\n    quiet()\n")],
        &["tests/test_outputs.py:3 `test_a` asserts nothing"],
    ),
    row(
        "swallowed-assertion",
        &[(
            TEST,
            "def test_a():\n    try:\n        assert a\n    except KeyError:\n        pass\n    try:\n        b()\n    except Exception:\n        pass\n    try:\n        assert c\n    except Exception as e:\n        pytest.fail(e)\n",
        )],
        &[],
    ),
    row(
        "swallowed-assertion",
        &[(
            TEST,
            "def test_a():\n    try:\n        assert a\n    except (KeyError, Exception):\n        print('no')\n        pass\n    else:\n        b()\n",
        )],
        &["tests/test_outputs.py:2 a failed assertion is caught, and the check continues"],
    ),
    row("verifier-imports-reference", &[(TEST, "from solutions import x\nopen('/app/solution/x')\n")], &[]),
    row(
        "verifier-imports-reference",
        &[(TEST, "from solution.solve import x\nopen('/solution/x')\n")],
        &[
            "tests/test_outputs.py:1 the tests use the reference solution",
            "tests/test_outputs.py:2 the tests use the reference solution",
        ],
    ),
    row(
        "verifier-imports-reference",
        &[
            ("instruction.md", "Write your answer to `/solution/answer.json` and a module `solution.py`.\n"),
            (TEST, "from solution import x\nopen('/solution/answer.json')\n"),
            (SCRIPT, "cat /solution/answer.json > reward\n"),
        ],
        &[],
    ),
    row(
        "verifier-imports-reference",
        &[
            ("instruction.md", "Give the solution of /app/my-solution/x, without a reference-solution.py.\n"),
            (TEST, "from solution import x\nopen('/solution/answer.json')\n"),
        ],
        &[
            "tests/test_outputs.py:1 the tests use the reference solution",
            "tests/test_outputs.py:2 the tests use the reference solution",
        ],
    ),
    row(
        "unsorted-listing",
        &[(TEST, "assert sorted(os.listdir('a')) == ['b']\nassert len(list(p.glob('*'))) == 2\n")],
        &[],
    ),
    row(
        "unsorted-listing",
        &[(TEST, "assert os.listdir('a') == ['b']\nassert ['a'] == [x.name for x in p.iterdir()]\n")],
        &[
            "tests/test_outputs.py:1 a listing of files is compared in the file system's order",
            "tests/test_outputs.py:2 a listing of files is compared in the file system's order",
        ],
    ),
    row("address-space-limit", &[(SCRIPT, "ulimit -n 10\n# ulimit -v 1\n")], &[]),
    row(
        "address-space-limit",
        &[(SCRIPT, "ulimit -Sv 10\n")],
        &["tests/test.sh:1 memory is limited by address space"],
    ),
    row("service-restarted-by-verifier", &[(SCRIPT, "systemctl status nginx\n")], &[]),
    row(
        "service-restarted-by-verifier",
        &[(SCRIPT, "service nginx restart\n")],
        &["tests/test.sh:1 the verifier starts a service itself"],
    ),
    row("integrity-only-tests", &[(SCRIPT, "md5sum a > b\n")], &[]),
    row(
        "integrity-only-tests",
        &[(SCRIPT, "md5sum -c sums\n")],
        &["tests/test.sh:1 the tests compare a list of checksums"],
    ),
    row("no-reward-written", &[], &[]),
    row(
        "no-reward-written",
        &[(SCRIPT, "pytest\n")],
        &["tests/test.sh nothing in `tests/` writes /logs/verifier/reward.txt"],
    ),
    row("hardcoded-solution", &[], &[]),
    row("hardcoded-solution", &[(SOLVE, "mkdir a\ncat > a/b <<E\n$(sort x)\nE\n")], &[]),
    row(
        "hardcoded-solution",
        &[(SOLVE, "#!/bin/bash\nset -e\ncat > /app/out.csv <<'E'\nsort\nE\n")],
        &["solution/solve.sh only writes fixed text, and computes nothing"],
    ),
    row(
        "unpinned-python-dependency",
        &[(
            SCRIPT,
            "pip install -r r.txt a==1 -i x ./b c.whl\nuvx -p 3.13 -w pytest==8 pytest\nuv pip install --python x a==2\npip --version\n",
        )],
        &[],
    ),
    row(
        "unpinned-python-dependency",
        &[
            (
                "environment/Dockerfile",
                "FROM x\nRUN apt-get update && \\\n python3 -m pip install --no-cache-dir a==1 'b>=2'\n",
            ),
            (SCRIPT, "uvx pytest\nuv add a\n"),
        ],
        &[
            "environment/Dockerfile:2 `b>=2` is installed in its newest version",
            "tests/test.sh:1 `pytest` is installed in its newest version",
            "tests/test.sh:2 `a` is installed in its newest version",
        ],
    ),
    row(
        "D-25-eval-of-agent-data",
        &[(TEST, "# pickle.load(f)\njson.loads(text)\nevaluate(text)\n"), (SCRIPT, "source /tests/lib.sh\n")],
        &[],
    ),
    row(
        "D-25-eval-of-agent-data",
        &[(TEST, "x = pickle.load(f)\n\ny = eval(open('/app/x').read())\n"), (SCRIPT, ". /app/env.sh\n")],
        &[
            "tests/test_outputs.py:1 a file that can run code when it is read is read in the verifier's own process",
            "tests/test_outputs.py:3 text of the solver's is evaluated as Python",
            "tests/test.sh:1 a shell file of the solver's is read into the verifier's own shell",
        ],
    ),
    row(
        "wall-clock",
        &[(
            TEST,
            "x = time.monotonic()\ny = datetime(2024, 1, 1)\nprint(datetime.now())\nlog.write(f'{time.time()}')\nwhile time.time() < end:\n    pass\nassert x, datetime.now()\n",
        )],
        &[],
    ),
    row(
        "wall-clock",
        &[(
            TEST,
            "\nassert x == date.today()\nnow = datetime.datetime.now().isoformat()\nassert x['at'] == now\n",
        )],
        &[
            "tests/test_outputs.py:2 a check depends on the wall clock",
            "tests/test_outputs.py:4 a check depends on the wall clock",
        ],
    ),
    // A helper with arguments, one whose value is used, and a fixture are no checks.
    row(
        "check-without-assert",
        &[(
            TEST,
            "def test_case(a):\n    return run(a)\ndef test_value():\n    return 1\n@pytest.fixture\ndef test_client():\n    return 1\ndef test_a(test_client):\n    assert test_case(1) == test_value()\n",
        )],
        &[],
    ),
    row(
        "check-without-assert",
        &[(TEST, "def test_a():\n    print(1)\nif __name__ == '__main__':\n    test_a()\n")],
        &["tests/test_outputs.py:1 `test_a` asserts nothing"],
    ),
    row(
        "lenient-zip",
        &[(
            TEST,
            "def test_a():\n    for a, b in zip(x, y, strict=True):\n        assert a == b\n    for a in zip(count(), x):\n        assert a\n    t = zip(*rows)\n    archive.zip(x, y)\n",
        )],
        &[],
    ),
    // Nothing is compared; the lengths are compared; neighbours are compared.
    row(
        "lenient-zip",
        &[(
            TEST,
            "def test_a():\n    assert set(zip(a, b)) == c\n    row = dict(zip(a, b))\n    for x, y in zip(a, b):\n        print(x)\ndef test_b():\n    assert len(a) == len(b)\n    for x, y in zip(a, b):\n        assert x == y\ndef test_c():\n    assert all(x < y for x, y in zip(a, a[1:]))\ndef test_d():\n    bad = [x for x, y in zip(a, b) if x != y]\n    assert a == b, bad\n",
        )],
        &[],
    ),
    row(
        "lenient-zip",
        &[(
            TEST,
            "def helper(x, y):\n    return all(a == b for a, b in zip(x, y))\ndef test_a():\n    for a, b in zip(\n        x,  # got\n        y,\n        strict_=1,\n    ):\n        assert a == b\n",
        )],
        &[
            "tests/test_outputs.py:2 `zip` stops at the shorter list, and compares nothing if one is empty",
            "tests/test_outputs.py:4 `zip` stops at the shorter list, and compares nothing if one is empty",
        ],
    ),
];
