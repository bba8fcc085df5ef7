//! Rows of the rules about Dockerfiles and compose files.

use super::{Row, row};

const DOCKERFILE: &str = "environment/Dockerfile";
const COMPOSE: &str = "environment/docker-compose.yaml";

pub(super) const ROWS: &[Row] = &[
    row("copy-source", &[], &[]),
    row(
        "copy-source",
        &[(
            DOCKERFILE,
            "FROM x AS b\nCOPY --from=b /x /y\nCOPY ./app/*.csv $A/x /app/\nADD https://a.org/x /x\nCOPY . /all\nCOPY <<EOF /e\nx\nEOF\n",
        )],
        &[],
    ),
    row(
        "copy-source",
        &[(
            DOCKERFILE,
            "FROM x\nCOPY app/in.csv \\\n  app/none.csv /app/\nCOPY [\"a b\", \"/d\"]\nCOPY app/*.txt /\n",
        )],
        &[
            "environment/Dockerfile:2 COPY of `app/none.csv`, which is not there",
            "environment/Dockerfile:4 COPY of `a b`, which is not there",
            "environment/Dockerfile:5 COPY of `app/*.txt`, which is not there",
        ],
    ),
    row(
        "copy-source",
        &[
            (DOCKERFILE, "FROM x\nCOPY tests/x /x\n"),
            (COMPOSE, "services:\n  main:\n    build:\n      context: ..\n"),
        ],
        &[],
    ),
    // ARG and ENV with a known value, and triggers of a stage that another stage is based on.
    row(
        "copy-source",
        &[(
            DOCKERFILE,
            "ARG SRC=pkg\nFROM x AS base\nARG SRC\nADD $SRC/ /x/\nENV D=app E=none\nCOPY ${D}/in.csv \"$E/a\" ${U}/a ${V:-gone} /x/\nONBUILD COPY later /y\nONBUILD COPY app /y\nFROM base\nFROM y\nONBUILD COPY never /y\n",
        )],
        &[
            "environment/Dockerfile:4 ADD of `pkg/`, which is not there",
            "environment/Dockerfile:6 COPY of `none/a`, which is not there",
            "environment/Dockerfile:6 COPY of `gone`, which is not there",
            "environment/Dockerfile:7 COPY of `later`, which is not there",
        ],
    ),
    row(
        "copy-source",
        &[
            (DOCKERFILE, "ARG SRC=pkg\nFROM x\nARG SRC\nADD $SRC/ /x/\n"),
            (COMPOSE, "services:\n  main:\n    build:\n      context: .\n      args: {SRC: app}\n"),
        ],
        &[],
    ),
    row(
        "copy-source",
        &[
            (
                DOCKERFILE,
                "FROM x\nCOPY data/ app/in.csv /x/\nCOPY *.md app/*.csv /x/\nCOPY ../app/./in.csv keep /x/\n",
            ),
            ("environment/.dockerignore", "# answers\ndata\n*.md\n!README.md\n"),
            ("environment/data/a.txt", "a"),
            ("environment/keep/a.txt", "a"),
        ],
        &["environment/Dockerfile:2 COPY of `data/`, which .dockerignore excludes"],
    ),
    row(
        "copy-source",
        &[("environment/.dockerignore", "a\n[b\n")],
        &["environment/.dockerignore:2 `[b` is not a valid pattern, so the build fails here"],
    ),
    row(
        "copy-source",
        &[(DOCKERFILE, "FROM x\nCOPY inbox/ /app/inbox/\n"), ("folder:environment/inbox", "")],
        &[],
    ),
    row(
        "agent-image-test-leak",
        &[(DOCKERFILE, "FROM x\nCOPY resolve.sh latest.sh /\n# COPY tests/ /\n")],
        &[],
    ),
    row(
        "agent-image-test-leak",
        &[(DOCKERFILE, "FROM x\nCOPY tests/ /tests\nADD solution/a /\nCOPY test_outputs.py /\n")],
        &[
            "environment/Dockerfile:2 `tests/` goes into the solver's image",
            "environment/Dockerfile:3 `solution/a` goes into the solver's image",
            "environment/Dockerfile:4 `test_outputs.py` goes into the solver's image",
        ],
    ),
    row("answer-in-context", &[("environment/app/a", "short"), ("tests/expected.txt", "short")], &[]),
    row(
        "answer-in-context",
        &[
            ("environment/app/a", "0123456789012345678901234567890123456789012345678901234567890123"),
            ("tests/expected.txt", "0123456789012345678901234567890123456789012345678901234567890123"),
        ],
        &["environment/app/a the same bytes as `tests/expected.txt`"],
    ),
    row("root-agent", &[(DOCKERFILE, "FROM x\nUSER me\n")], &[]),
    row("root-agent", &[("task.toml", "agent.user = 1000\n")], &[]),
    row(
        "root-agent",
        &[(DOCKERFILE, "FROM x\nUSER me\nFROM y\n")],
        &["environment/Dockerfile the solver works as root"],
    ),
    row("unpinned-image", &[(DOCKERFILE, "FROM x@sha256:00 AS a\nFROM a\nFROM scratch\n")], &[]),
    row(
        "unpinned-image",
        &[(DOCKERFILE, "FROM x:1\n")],
        &["environment/Dockerfile:1 `x:1` is not pinned by digest"],
    ),
    row(
        "unpinned-image",
        &[(DOCKERFILE, "FROM x:1\n"), ("task.toml", "environment.docker_image = \"y\"\n")],
        &["task.toml:1 `y` is not pinned by digest"],
    ),
    row(
        "apt-version-pin",
        &[(DOCKERFILE, "FROM x\nRUN A=1 apt-get install -y -o Dpkg::Options=x curl ${B}=$C && x=1 y\n")],
        &[],
    ),
    row(
        "apt-version-pin",
        &[(DOCKERFILE, "FROM x\nRUN apt-get update && \\\n  apt-get install -y \\\n  curl=7.88\n")],
        &["environment/Dockerfile:2 `curl=7.88` will disappear from Debian's archive"],
    ),
    row("apt-without-update", &[(DOCKERFILE, "FROM x\nRUN apt-get update && apt-get install -y a\n")], &[]),
    row(
        "apt-without-update",
        &[(DOCKERFILE, "FROM x\nRUN apt-get update\nRUN apt-get install -y a\n")],
        &["environment/Dockerfile:3 packages are installed without `apt-get update` in the same RUN"],
    ),
    row("apt-lists-left", &[(DOCKERFILE, "RUN apt-get install a && rm -rf /var/lib/apt/lists/*\n")], &[]),
    row(
        "apt-lists-left",
        &[(DOCKERFILE, "RUN apt-get install a\n")],
        &["environment/Dockerfile:1 the package lists stay in the layer"],
    ),
    row("dockerfile-platform", &[(DOCKERFILE, "# FROM --platform=x y\nFROM y\n")], &[]),
    row(
        "dockerfile-platform",
        &[(DOCKERFILE, "FROM --platform=linux/amd64 y\n")],
        &["environment/Dockerfile:1 the Dockerfile asks for one platform"],
    ),
    row(
        "git-history-in-image",
        &[(DOCKERFILE, "RUN git clone --depth 1 a\nRUN git clone b && rm -rf b/.git\n")],
        &[],
    ),
    row(
        "git-history-in-image",
        &[(DOCKERFILE, "RUN git clone https://a/b\n"), ("environment/app/.git/HEAD", "x")],
        &[
            "environment/app/.git/HEAD a repository with its history goes into the image",
            "environment/Dockerfile:1 the clone's whole history stays in the image",
        ],
    ),
    row(
        "non-executable-run",
        &[
            (DOCKERFILE, "COPY s.sh /\nRUN chmod +x /s.sh && /s.sh\nRUN bash /t.sh && /usr/bin/true\n"),
            ("environment/s.sh", "x"),
            ("environment/t.sh", "x"),
        ],
        &[],
    ),
    row(
        "non-executable-run",
        &[(DOCKERFILE, "COPY s.sh /\nRUN /s.sh\n"), ("environment/s.sh", "x")],
        &["environment/Dockerfile:2 `/s.sh` is run, but `environment/s.sh` is not executable"],
    ),
    row("local-image", &[], &[]),
    row(
        "local-image",
        &[(DOCKERFILE, "ARG A\nFROM $A\n")],
        &["environment/Dockerfile the Dockerfile does not begin with a public FROM"],
    ),
    row("test-deps-in-image", &[], &[]),
    row(
        "test-deps-in-image",
        &[(DOCKERFILE, "FROM x\nRUN pip install pytest==8\n")],
        &["environment/Dockerfile:2 the test runner is in the solver's image"],
    ),
    row("nproc", &[("solution/solve.sh", "# nproc\nnprocs\n")], &[]),
    row(
        "nproc",
        &[("solution/solve.sh", "make -j$(nproc)\n")],
        &["solution/solve.sh:1 a script asks nproc for the number of cores"],
    ),
    row("invalid-compose", &[(COMPOSE, "services:\n  main: {image: x}\n  db: {image: y}\n")], &[]),
    row(
        "invalid-compose",
        &[(COMPOSE, "services: [\n")],
        &[
            "environment/docker-compose.yaml:2 invalid YAML: while parsing a node, did not find expected node content",
        ],
    ),
    row(
        "invalid-compose",
        &[(COMPOSE, "version: '3'\n")],
        &["environment/docker-compose.yaml:1 no `services`"],
    ),
    row(
        "invalid-compose",
        &[(COMPOSE, "services:\n  app: {image: x}\n")],
        &["environment/docker-compose.yaml:1 no service is called `main`; the solver works in that one"],
    ),
    row("compose-privileged", &[(COMPOSE, "services:\n  main:\n    privileged: false\n")], &[]),
    row(
        "compose-privileged",
        &[(COMPOSE, "x-a: &a\n  privileged: yes\nservices:\n  main:\n    <<: *a\n")],
        &["environment/docker-compose.yaml:2 service `main` is privileged"],
    ),
    row(
        "compose-additional-capabilities",
        &[(COMPOSE, "services:\n  main:\n    cap_add: []\n    cap_drop: [ALL]\n")],
        &[],
    ),
    row(
        "compose-additional-capabilities",
        &[(COMPOSE, "services:\n  main:\n    cap_add:\n      - SYS_PTRACE\n")],
        &["environment/docker-compose.yaml:4 service `main` gets the capability SYS_PTRACE"],
    ),
    row("compose-host-namespace", &[(COMPOSE, "services:\n  main:\n    network_mode: none\n")], &[]),
    row(
        "compose-host-namespace",
        &[(COMPOSE, "services:\n  main:\n    network_mode: host\n    devices: [/dev/fuse]\n")],
        &[
            "environment/docker-compose.yaml:3 service `main` has `network_mode: host`",
            "environment/docker-compose.yaml:4 service `main` gets a device of the host",
        ],
    ),
    row(
        "compose-writable-bind-mount",
        &[(
            COMPOSE,
            "services:\n  main:\n    volumes:\n      - data:/data\n      - ./a:/a:ro\n      - ${HOST_LOGS}:/logs\n      - {type: bind, source: ./a, target: /a, read_only: true}\n",
        )],
        &[],
    ),
    row(
        "compose-writable-bind-mount",
        &[(
            COMPOSE,
            "services:\n  main:\n    volumes:\n      - ./a:/a\n      - {type: bind, source: /b, target: /b}\n",
        )],
        &[
            "environment/docker-compose.yaml:4 `./a` of the host can be written from the container",
            "environment/docker-compose.yaml:5 `/b` of the host can be written from the container",
        ],
    ),
    row(
        "compose-external-bind-mount",
        &[(COMPOSE, "services:\n  main:\n    volumes: ['./a/../b:/a']\n")],
        &[],
    ),
    row(
        "compose-external-bind-mount",
        &[(
            COMPOSE,
            "services:\n  main:\n    volumes: ['../tests:/t', '/var/run/docker.sock:/s:ro', '${A:-x}:/a']\n",
        )],
        &[
            "environment/docker-compose.yaml:3 `../tests` lies outside of the compose file's folder",
            "environment/docker-compose.yaml:3 `/var/run/docker.sock` lies outside of the compose file's folder",
            "environment/docker-compose.yaml:3 `${A:-x}` lies outside of the compose file's folder",
        ],
    ),
    row(
        "compose-symlink-bind-mount",
        &[(COMPOSE, "services:\n  main:\n    volumes: ['./ab:/a:ro']\n"), ("link:environment/a", "")],
        &[],
    ),
    row(
        "compose-symlink-bind-mount",
        &[(COMPOSE, "services:\n  main:\n    volumes: ['./a/b:/a:ro']\n"), ("escape:environment/a", "")],
        &["environment/docker-compose.yaml:3 `./a/b` leads through the symbolic link `environment/a`"],
    ),
];
