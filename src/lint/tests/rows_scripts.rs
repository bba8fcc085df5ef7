//! Rows of the rules about commands in scripts: carriage returns, paths, rewards, restored tests.

use super::{Row, row};

const TEST: &str = "tests/test_outputs.py";
const SCRIPT: &str = "tests/test.sh";
const SOLVE: &str = "solution/solve.sh";
const DOCKERFILE: &str = "environment/Dockerfile";
const TOML: &str = "task.toml";
const SHARED: &str = "[verifier]\nenvironment_mode = \"shared\"\n";
const SEPARATE: &str = "artifacts = [\"/app/data\"]\n[verifier]\nenvironment_mode = \"separate\"\n";

pub(super) const ROWS: &[Row] = &[
    row(
        "crlf-script",
        &[(SOLVE, "#!/bin/bash\r\n")],
        &["solution/solve.sh:1 the first line ends with a carriage return, so the interpreter is not found"],
    ),
    row(
        "crlf-script",
        &[(SCRIPT, "#!/bin/bash\n\r\n# a\r\necho a\r\n")],
        &[
            "tests/test.sh:4 the line ends with a carriage return, which the shell reads as part of the command",
        ],
    ),
    // A helper, a helper of that helper, and a script that nothing starts.
    row(
        "crlf-script",
        &[
            (SCRIPT, "#!/bin/bash\nif /tests/a.sh; then echo 1 > /logs/verifier/reward.txt; fi\n"),
            ("tests/a.sh", "#!/bin/bash\nbash \"$(dirname \"$0\")/b.sh\"\n"),
            ("tests/b.sh", "#!/bin/bash\r\necho a\n"),
            ("tests/c.sh", "#!/bin/bash\r\necho a\r\n"),
        ],
        &[],
    ),
    row(
        "crlf-script",
        &[
            (SCRIPT, "#!/bin/bash\nif /tests/a.sh; then echo 1 > /logs/verifier/reward.txt; fi\n"),
            ("tests/a.sh", "#!/bin/bash\r\nexit 0\n"),
        ],
        &["tests/a.sh:1 the first line ends with a carriage return, so the interpreter is not found"],
    ),
    row(
        "crlf-script",
        &[
            (
                DOCKERFILE,
                "FROM x\nCOPY gen.sh start.py /app/\nRUN /app/gen.sh\nENTRYPOINT [\"/app/start.py\"]\n",
            ),
            ("environment/gen.sh", "#!/bin/bash\necho hi\r\n"),
            ("environment/start.py", "#!/usr/bin/env python3\r\nprint()\r\n"),
        ],
        &[
            "environment/gen.sh:2 the line ends with a carriage return, which the shell reads as part of the command",
            "environment/start.py:1 the first line ends with a carriage return, so the interpreter is not found",
        ],
    ),
    // The build converts the line ends. Text inside a script is data.
    row(
        "crlf-script",
        &[
            (DOCKERFILE, "FROM x\nCOPY gen.sh /app/\nRUN sed -i 's/\\r$//' /app/gen.sh && /app/gen.sh\n"),
            ("environment/gen.sh", "#!/bin/bash\r\n"),
        ],
        &[],
    ),
    row("crlf-script", &[(SOLVE, "#!/bin/bash\ncat > /app/a <<'E'\nb\r\nE\necho 'c\r\nd'\n")], &[]),
    // Python accepts such line ends.
    row(
        "crlf-script",
        &[(SCRIPT, "python3 /tests/a.py\n"), ("tests/a.py", "#!/usr/bin/python3\r\nx = 1\r\n")],
        &[],
    ),
    row(
        "missing-task-file",
        &[(SOLVE, "set -e\ncp /solution/a.json /app/\n")],
        &["solution/solve.sh:2 `/solution/a.json` is used, but the task has no such file"],
    ),
    row(
        "missing-task-file",
        &[
            (
                SCRIPT,
                "D=$(cd \"$(dirname \"$0\")\" && pwd)\nif python3 $D/helper.py; then :; fi\nsort < /tests/in\npytest /tests/t.py::a\n",
            ),
            (TEST, "open('/tests/cases.json')\n"),
        ],
        &[
            "tests/test.sh:2 `/tests/helper.py` is used, but the task has no such file",
            "tests/test.sh:3 `/tests/in` is used, but the task has no such file",
            "tests/test.sh:4 `/tests/t.py` is used, but the task has no such file",
            "tests/test_outputs.py:1 `/tests/cases.json` is used, but the task has no such file",
        ],
    ),
    row(
        "missing-task-file",
        &[
            (
                SCRIPT,
                "pytest /tests /tests/lib /tests/*.py $X/a\n[ -f /tests/opt.sh ] && . /tests/opt.sh\nmkdir -p /tests/out\ncat /tests/out/a\ncp /app/x /tests/x\ncat /tests/x\ncat /tests/no || true\nbash /tests/lib/a.sh\n",
            ),
            ("tests/lib/a.sh", "bash $(dirname $0)/b.sh\n"),
            ("tests/lib/b.sh", "x\n"),
        ],
        &[],
    ),
    // The image brings the file, or the solver makes it.
    row(
        "missing-task-file",
        &[(SCRIPT, "bash /tests/a.sh\n"), ("tests/Dockerfile", "FROM x\nRUN make /tests/a.sh\n")],
        &[],
    ),
    row(
        "missing-task-file",
        &[(SCRIPT, "cat /solution/a.json\n"), ("instruction.md", "Write `/solution/a.json`.\n")],
        &[],
    ),
    row(
        "reward-json",
        &[(
            SCRIPT,
            "if a; then\n  echo '{\"score\": 1.0, \"state\": \"pass\"}' > /logs/verifier/reward.json\nfi\n",
        )],
        &[
            "tests/test.sh:2 reward.json has a text at `state`: Harbor reads it before reward.txt, and accepts only numbers",
        ],
    ),
    row(
        "reward-json",
        &[(
            SCRIPT,
            "R=/logs/verifier/reward.json\ncat > \"$R\" <<EOF\n{\"reward\": $X, \"failures\": []}\nEOF\n",
        )],
        &[
            "tests/test.sh:2 reward.json has a list at `failures`: Harbor reads it before reward.txt, and accepts only numbers",
        ],
    ),
    row(
        "reward-json",
        &[(TEST, "with open('/logs/verifier/reward.json', 'w') as f:\n    json.dump({'a': {}}, f)\n")],
        &[
            "tests/test_outputs.py:2 reward.json has an object at `a`: Harbor reads it before reward.txt, and accepts only numbers",
        ],
    ),
    row(
        "reward-json",
        &[(
            SCRIPT,
            "echo \"{\\\"reward\\\": $X}\" > /logs/verifier/reward.json\nprintf '{\"a\": %s}' 1 > /logs/verifier/reward.json\necho '{\"a\": \"b\"}' > /logs/verifier/details.json\n",
        )],
        &[],
    ),
    row(
        "reward-json",
        &[(
            SCRIPT,
            "python3 - \"$1\" <<'PY'\nimport json\njson.dump({'reward': 0.0, 'state': 'x'}, open('/logs/verifier/reward.json', 'w'))\nPY\npython3 -c \"print('{}')\" > /logs/verifier/reward.json\n",
        )],
        &[
            "tests/test.sh:3 reward.json has a text at `state`: Harbor reads it before reward.txt, and accepts only numbers",
        ],
    ),
    row(
        "restored-tests",
        &[(
            SCRIPT,
            "cd /app && git checkout -q HEAD -- tests\ngit restore --source=HEAD --staged --worktree tests\ngit -C /app checkout .\ngit stash\ngit reset --hard\ngit show main:tests/a.py > /tmp/a.py\ngit restore tests\n",
        )],
        &[
            "tests/test.sh:1 git restores files from `HEAD`, which a solver can change by a commit",
            "tests/test.sh:2 git restores files from `HEAD`, which a solver can change by a commit",
            "tests/test.sh:3 git restores files from the index, which a solver can change by a commit",
            "tests/test.sh:4 git restores files from `HEAD`, which a solver can change by a commit",
            "tests/test.sh:5 git restores files from `HEAD`, which a solver can change by a commit",
            "tests/test.sh:6 git restores files from `main`, which a solver can change by a commit",
            "tests/test.sh:7 git restores files from the index, which a solver can change by a commit",
        ],
    ),
    row(
        "restored-tests",
        &[(SCRIPT, "true\n"), ("tests/pristine/make-repo.sh", "git init -q\ngit restore tests\n")],
        &[],
    ),
    row(
        "restored-tests",
        &[(TEST, "subprocess.run(['git', 'checkout', 'HEAD', '--', 'tests'])\n")],
        &["tests/test_outputs.py:1 git restores files from `HEAD`, which a solver can change by a commit"],
    ),
    row(
        "restored-tests",
        &[(
            SCRIPT,
            "git checkout 0123456789abcdef0123456789abcdef01234567 -- tests\ngit checkout $BASE -- tests\ngit checkout -b x\ngit status\ngit stash list\ngit show --stat\ngit show HEAD:a | grep b\ncat <<'E'\ngit checkout HEAD -- tests\nE\n",
        )],
        &[],
    ),
    row(
        "unlisted-artifact",
        &[
            (TOML, SEPARATE),
            (SCRIPT, "if [ \"$(cat /app/out.csv)\" = a ]; then echo 1 > /logs/verifier/reward.txt; fi\n"),
        ],
        &["tests/test.sh:1 the tests read `/app/out.csv`, but no artifact brings it to the verifier"],
    ),
    row(
        "unlisted-artifact",
        &[(TOML, SEPARATE), (TEST, "OUT = '/app/out.csv'\nIN = '/app/in.csv'\n")],
        &["tests/test_outputs.py:1 the tests read `/app/out.csv`, but no artifact brings it to the verifier"],
    ),
    row("unlisted-artifact", &[(TOML, SHARED), (TEST, "OUT = '/app/out.csv'\n")], &[]),
    row(
        "unlisted-artifact",
        &[
            (TOML, "artifacts = [\"/app/\"]\n[verifier]\nenvironment_mode = \"separate\"\n"),
            (TEST, "OUT = '/app/out.csv'\n"),
        ],
        &[],
    ),
    row(
        "unlisted-artifact",
        &[
            (TOML, "artifacts = [\"out.csv\"]\n[verifier]\nenvironment_mode = \"separate\"\n"),
            (TEST, "OUT = '/app/out.csv'\nX = '/tests/x.csv'\n"),
        ],
        &[],
    ),
    row(
        "image-command",
        &[(DOCKERFILE, "FROM x\nCMD [\"/bin/sh\", \"-c\", \"echo a > /app/db.txt; exec sleep infinity\"]\n")],
        &[
            "environment/Dockerfile:2 no harness runs the CMD of the image, so what it starts or prepares is missing",
        ],
    ),
    row(
        "image-command",
        &[(DOCKERFILE, "FROM x\nCMD python3 server.py\n")],
        &[
            "environment/Dockerfile:2 no harness runs the CMD of the image, so what it starts or prepares is missing",
        ],
    ),
    row("image-command", &[(DOCKERFILE, "FROM x AS a\nCMD ./a\nFROM y\nCMD [\"/bin/bash\"]\n")], &[]),
    row("image-command", &[(DOCKERFILE, "FROM x\nCMD [\"sh\", \"-c\", \"sleep infinity\"]\n")], &[]),
    row("image-command", &[(DOCKERFILE, "FROM x\nCMD tail -f /dev/null\n")], &[]),
    row(
        "image-and-dockerfile",
        &[(TOML, "environment.docker_image = \"y:1\"\n")],
        &["task.toml:1 `docker_image` names `y:1`, so environment/Dockerfile is not built"],
    ),
    row(
        "image-and-dockerfile",
        &[(TOML, "environment.docker_image = \"y:1\"\n"), (DOCKERFILE, "# as built\nFROM y:1\n")],
        &[],
    ),
    // A Dockerfile that is not built has no findings of its own.
    row(
        "copy-source",
        &[(TOML, "environment.docker_image = \"y:1\"\n"), (DOCKERFILE, "FROM y\nCOPY none /\n")],
        &[],
    ),
    row("local-image", &[(TOML, "environment.docker_image = \"y:1\"\n"), (DOCKERFILE, "COPY none /\n")], &[]),
    row(
        "compose-file-name",
        &[("environment/docker-compose.yml", "services: {}\n")],
        &[
            "environment/docker-compose.yml Harbor reads only environment/docker-compose.yaml, so environment/docker-compose.yml has no effect",
        ],
    ),
    row(
        "compose-file-name",
        &[("environment/docker-compose.yml", "a"), ("environment/docker-compose.yaml", "a")],
        &[],
    ),
    row("D-16-fail-open", &[(SCRIPT, "# pytest x || true\npytest /tests/t.py && echo 1\n")], &[]),
    row(
        "D-16-fail-open",
        &[(
            SCRIPT,
            "#!/bin/bash\npytest /tests/t.py || true\nbash -c 'go test ./...' || :\nt() { uv run pytest; }\nt || true\n",
        )],
        &[
            "tests/test.sh:2 a failing test run is swallowed",
            "tests/test.sh:3 a failing test run is swallowed",
            "tests/test.sh:5 a failing test run is swallowed",
        ],
    ),
    // The name of a test runner alone is no test run. A saved status is read later.
    row(
        "D-16-fail-open",
        &[(
            SCRIPT,
            "python3 -m pip install -q pytest==9.0.3 2>/dev/null || true\ncp /tests/test_outputs.py /tmp/ || true\napt-get install -y python3-pytest || true\necho pytest || true\npytest --ctrf /logs/verifier/ctrf.json || true\npytest > /tmp/log 2>&1 || true\npytest | tee log || true\nx=$(pytest || true)\nbash /tests/grade.sh || true\ncat <<'E'\npytest || true\nE\n",
        )],
        &[],
    ),
    row(
        "D-16-fail-open",
        &[(SCRIPT, "pytest || true\n"), ("tests/conftest.py", "open('/logs/verifier/reward.txt', 'w')\n")],
        &[],
    ),
    row("masked-test-exit", &[(SCRIPT, "pytest || true\ncat x\n")], &[]),
    row("masked-test-exit", &[(SCRIPT, "pytest || status=1\n[ $? = 0 ]\n")], &[]),
    row("masked-test-exit", &[(SCRIPT, "pip install pytest || true\npytest x\nrc=$?\n")], &[]),
    row("masked-test-exit", &[(SCRIPT, "set -o pipefail\npytest | tee log\nrc=$?\n")], &[]),
    row("masked-test-exit", &[(SCRIPT, "pytest | tee log\nrc=${PIPESTATUS[0]}\n")], &[]),
    row(
        "masked-test-exit",
        &[(SCRIPT, "pytest /tests || true\nif [ $? -eq 0 ]; then x; fi\n")],
        &["tests/test.sh:1 `|| true` hides the status that `$?` reads below"],
    ),
    row(
        "masked-test-exit",
        &[(SCRIPT, "pytest /tests | tee log\nif [ $? -eq 0 ]; then x; fi\n")],
        &["tests/test.sh:1 `$?` below is the status of the last command of the pipeline, not of the tests"],
    ),
    row("reward-only-on-success", &[(SCRIPT, "set -e\necho 0 > reward\npytest\necho 1 > reward\n")], &[]),
    row("reward-only-on-success", &[(SCRIPT, "set -eu\nif pytest; then echo 1 > reward; fi\n")], &[]),
    row("reward-only-on-success", &[(SCRIPT, "set -e\nset +e\npytest\necho 1 > reward\n")], &[]),
    row("reward-only-on-success", &[(SCRIPT, "set -u\npytest\necho $? > reward\n")], &[]),
    row("reward-only-on-success", &[(SCRIPT, "set -e\npip install pytest\necho 1 > reward\n")], &[]),
    row(
        "reward-only-on-success",
        &[(SCRIPT, "set -e\ntrap 'echo 0 > reward' EXIT\npytest\necho 1 > reward\n")],
        &[],
    ),
    row("reward-only-on-success", &[(SCRIPT, "set -e\npytest || status=$?\necho 1 > reward\n")], &[]),
    row(
        "reward-only-on-success",
        &[(SCRIPT, "set -euo pipefail\npytest /tests\necho 1 > reward\n")],
        &["tests/test.sh:2 `set -e` (line 1) ends the script here when a test fails, without a reward"],
    ),
    row(
        "reward-only-on-success",
        &[(SCRIPT, "#!/bin/bash -e\ngrep -q a /app/b\necho 1 > $LOGS/reward.txt\n")],
        &["tests/test.sh:2 `set -e` (line 1) ends the script here when a test fails, without a reward"],
    ),
    row("sudo", &[("instruction.md", "/pseudo/ pseudosudoku. You have no sudo.\n")], &[]),
    row(
        "sudo",
        &[
            (SOLVE, "cat > /app/a.sh <<'E'\nsudo ls\nE\necho sudo\n"),
            (DOCKERFILE, "FROM x\nRUN apt-get install sudo\n"),
        ],
        &[],
    ),
    row(
        "sudo",
        &[
            (SOLVE, "# sudo\nx | sudo -u me ls\n"),
            ("instruction.md", "Start it:\n\n    sudo service x start\n"),
        ],
        &[
            "solution/solve.sh:2 sudo is not supported: containers run with no-new-privileges",
            "instruction.md:3 sudo is not supported: containers run with no-new-privileges",
        ],
    ),
    row(
        "trial-network-fetch",
        &[(
            SOLVE,
            "curl http://localhost:8080/x\ncurl --version\ncat > a <<'E'\ncurl https://a.org\nE\ngit clone /a b\n",
        )],
        &[],
    ),
    row(
        "trial-network-fetch",
        &[(SOLVE, "curl -L https://a.org/x\npip install y==1\ngit clone https://a.org/b\n")],
        &[
            "solution/solve.sh:1 the reference downloads something",
            "solution/solve.sh:2 the reference downloads something",
            "solution/solve.sh:3 the reference downloads something",
        ],
    ),
    row(
        "verifier-runtime-install",
        &[(
            SCRIPT,
            "# pip install x\necho pip install\napt list\nuv run --no-project pytest\nuv --version\nuv venv\npip install --no-index /tests/a.whl\ncat <<'E'\npip install x\nE\n",
        )],
        &[],
    ),
    row(
        "verifier-runtime-install",
        &[
            (
                SCRIPT,
                "DEBIAN_FRONTEND=x apt-get install -y curl\nx && uvx -w a pytest\nuv run --with a pytest\nuv sync\nuv run pip install x\n",
            ),
            (
                TEST,
                "subprocess.run(['pip', 'install', 'x'])\nsubprocess.run([sys.executable, '-m', 'pip', 'install', 'x'])\n",
            ),
        ],
        &[
            "tests/test.sh:1 `apt-get` installs something while the tests run",
            "tests/test.sh:2 `uvx` installs something while the tests run",
            "tests/test.sh:3 `uv` installs something while the tests run",
            "tests/test.sh:4 `uv` installs something while the tests run",
            "tests/test.sh:5 `pip` installs something while the tests run",
            "tests/test_outputs.py:1 `pip` installs something while the tests run",
            "tests/test_outputs.py:2 `pip` installs something while the tests run",
        ],
    ),
    row(
        "verifier-network-download",
        &[
            (
                SCRIPT,
                "curl -s http://localhost:80/\ncurl -s http://db:80/x\ncurl $URL\ngit diff\necho curl\ngit clone /app/x /tmp/x\ncat <<'E'\ncurl https://a.org\nE\n",
            ),
            (
                TEST,
                "x = 'curl https://a.org'\nrequests.get('http://localhost:5000/x')\nrequests.get(f'{BASE}/x')\nurlopen('http://web:80/')\n",
            ),
        ],
        &[],
    ),
    row(
        "verifier-network-download",
        &[
            (SCRIPT, "a=$(curl -LsSf https://a.org/x | sh)\n/usr/bin/git clone x\n"),
            (
                TEST,
                "os.system('wget https://a.org/x')\nurllib.request.urlopen('https://a.org/x', timeout=3)\nU = 'https://a.org'\nrequests.get(U)\nnltk.download('punkt')\n",
            ),
        ],
        &[
            "tests/test.sh:1 `curl` downloads something while the tests run",
            "tests/test.sh:2 `git` downloads something while the tests run",
            "tests/test_outputs.py:1 `wget` downloads something while the tests run",
            "tests/test_outputs.py:2 `urllib.request.urlopen` downloads something while the tests run",
            "tests/test_outputs.py:4 `requests.get` downloads something while the tests run",
            "tests/test_outputs.py:5 `nltk.download` downloads something while the tests run",
        ],
    ),
];
