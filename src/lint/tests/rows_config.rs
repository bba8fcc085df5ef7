//! Rows of the rules about `task.toml`, the directory and the instruction.

use super::{GONE, Row, row};

const TOML: &str = "task.toml";
const TEST: &str = "tests/test_outputs.py";

pub(super) const ROWS: &[Row] = &[
    row("invalid-task-config", &[], &[]),
    row(
        "invalid-task-config",
        &[(
            TOML,
            "[task]\nname = \"plain\"\n[environment]\nnetwork_mode = \"none\"\nmemory = \"2G\"\nmemory_mb = 1\n",
        )],
        &[
            "task.toml:5 `memory` = \"2G\" conflicts with `memory_mb` = 1, which takes precedence; Harbor refuses the task",
            "task.toml:2 `task.name` is `plain`; it must have the form `organisation/name`",
            "task.toml:4 `environment.network_mode` is `none`; it must be one of public, no-network, allowlist",
        ],
    ),
    row(
        "invalid-task-config",
        &[(
            TOML,
            "artifacts = [\"/app/../x\", { destination = \"/d\" }]\n[agent]\ntimeout_sec = 0\nallowed_hosts = [\"a.org\"]\n[[steps]]\nname = \"a\"\n[[steps]]\nname = \"A\"\n",
        )],
        &[
            "task.toml:4 `agent.allowed_hosts` without `network_mode = \"allowlist\"`",
            "task.toml:3 `agent.timeout_sec` must be a positive number of seconds",
            "task.toml:8 two steps are called `A`",
            "task.toml:1 the artifact `/app/../x` has `..` in its path",
            "task.toml:1 an artifact without `source`",
            "task.toml:1 the destination `/d` is not a plain relative path",
        ],
    ),
    row("unknown-config-field", &[(TOML, "[metadata]\nanything = 1\n")], &[]),
    row(
        "unknown-config-field",
        &[(TOML, "[environment]\ncpus = 1\ncpu = 2\n")],
        &["task.toml:3 unknown key `environment.cpu`, which Harbor ignores"],
    ),
    row("deprecated-config-field", &[], &[]),
    row(
        "deprecated-config-field",
        &[(TOML, "version = \"1.0\"\n[environment]\nallow_internet = true\n")],
        &[
            "task.toml:1 `version` is deprecated; it is called `schema_version`",
            "task.toml:3 `allow_internet` is deprecated; it is called `network_mode`",
        ],
    ),
    row("shared-verifier", &[], &[]),
    row("shared-verifier", &[(TOML, "[verifier.environment]\ndocker_image = \"x\"\n")], &[]),
    row(
        "shared-verifier",
        &[(TOML, "[verifier]\ntimeout_sec = 1\n")],
        &["task.toml:1 the tests run in the container that the solver worked in"],
    ),
    row("artifact-log-overlap", &[(TOML, "artifacts = [\"/app\", \"/logstash\"]\n")], &[]),
    row(
        "artifact-log-overlap",
        &[(TOML, "artifacts = [\n\"/app\",\n\"/logs/verifier\"]\n")],
        &["task.toml:3 the artifact `/logs/verifier` overlaps `/logs`, which Harbor transfers itself"],
    ),
    row(
        "overlapping-artifacts",
        &[(TOML, "artifacts = [\"/app\", \"/apple\", { source = \"/app/x\", service = \"db\" }]\n")],
        &[],
    ),
    row(
        "overlapping-artifacts",
        &[(TOML, "artifacts = [\"/app/x\", \"/app/\", { source = \"/app\" }]\n")],
        &[
            "task.toml:1 the artifact `/app/x` is inside the artifact `/app`",
            "task.toml:1 the artifact `/app` is inside the artifact `/app`",
        ],
    ),
    row("host-variable", &[(TOML, "[environment.env]\nA = \"${B:-1}\"\nC = \"$D\"\n")], &[]),
    row(
        "host-variable",
        &[(TOML, "[verifier.env]\nA = \"x${KEY}\"\n")],
        &["task.toml:2 `verifier.env.A` requires `KEY` in the environment of the host"],
    ),
    row("no-agent-timeout", &[], &[]),
    row(
        "no-agent-timeout",
        &[(TOML, "schema_version = \"1.4\"\n")],
        &["task.toml no `agent.timeout_sec`: Harbor lets the solver run without a limit"],
    ),
    row("task-timeout", &[], &[]),
    row(
        "task-timeout",
        &[(TOML, "[agent]\ntimeout_sec = 18001\n[verifier]\ntimeout_sec = 18000\n")],
        &["task.toml:2 `agent.timeout_sec` is 18001 s; the limit is 18000 s"],
    ),
    row("gpu-types", &[(TOML, "[environment]\ngpus = 1\ngpu_types = [\"H100\"]\n")], &[]),
    row("gpu-types", &[(TOML, "[environment]\ngpus = 1\n")], &["task.toml:2 GPUs without `gpu_types`"]),
    row(
        "gpu-types",
        &[(TOML, "[environment]\ngpus = 0\ngpu_types = [\"H100\"]\n")],
        &["task.toml:3 `gpu_types` without `gpus`"],
    ),
    row(
        "task-fields",
        &[(
            TOML,
            "[metadata]\nauthor_name = 1\ndifficulty_explanation = 1\nsolution_explanation = 1\nverification_explanation = 1\ncategory = 1\ntags = 1\nexpert_time_estimate_hours = 1\n",
        )],
        &[],
    ),
    row(
        "task-fields",
        &[(
            TOML,
            "[metadata]\nauthor_name = 1\ndifficulty_explanation = 1\nsolution_explanation = 1\nverification_explanation = 1\ncategory = 1\n",
        )],
        &["task.toml:1 [metadata] has no tags, expert_time_estimate_hours"],
    ),
    row("task-package-name", &[], &[]),
    row("task-package-name", &[(TOML, "")], &["task.toml no `task.name`: the task cannot be published"]),
    row(
        "task-package-name",
        &[(TOML, "task.name = \"org/other\"\n")],
        &["task.toml:1 `task.name` is `org/other`, but the folder is called `a-task`"],
    ),
    row("windows-task", &[(TOML, "environment.os = \"linux\"\n")], &[]),
    row(
        "windows-task",
        &[(TOML, "environment.os = \"windows\"\n")],
        &["task.toml:1 the task needs Windows containers"],
    ),
    row("invalid-task-files", &[("link:tests/x", "")], &[]),
    row("invalid-task-files", &[("tests/test.sh", GONE), ("tests/Dockerfile", "FROM x\n")], &[]),
    row(
        "invalid-task-files",
        &[
            (TOML, "steps = [{ name = \"one\" }]\n"),
            ("steps/one/instruction.md", "x"),
            ("steps/one/tests/test.sh", "x"),
            ("tests/test.sh", GONE),
            ("instruction.md", GONE),
        ],
        &[],
    ),
    row(
        "invalid-task-files",
        &[
            ("instruction.md", " \n"),
            ("tests/test.sh", GONE),
            ("environment/Dockerfile", GONE),
            ("escape:solution/x", ""),
        ],
        &[
            "instruction.md empty",
            "tests/test.sh missing, so solutions cannot be verified",
            "environment/Dockerfile missing, and `environment.docker_image` names no image",
            "solution/x a symbolic link that leads out of the task, or nowhere",
        ],
    ),
    row("symbolic-link", &[("escape:tests/x", "")], &[]),
    row("symbolic-link", &[("link:environment/x", "")], &[]),
    row(
        "symbolic-link",
        &[("link:tests/x", "")],
        &["tests/x a symbolic link, which termsmith does not follow"],
    ),
    row("prior-trajectory", &[("tests/trajectory.json", "{}")], &[]),
    row(
        "prior-trajectory",
        &[("trajectory.json", "{}")],
        &["trajectory.json Harbor loads it as earlier context of the agent, and most agents then fail"],
    ),
    row("task-slug", &[("name:one-two-three", "")], &[]),
    row(
        "task-slug",
        &[("name:one-two_three-four", "")],
        &["task.toml `one-two_three-four` has 4 words, more than 3"],
    ),
    row(
        "unreasoned-ignore",
        &[(TOML, "[metadata.termsmith.lint]\nignore = { nproc = \"four at most\" }\n")],
        &[],
    ),
    row(
        "unreasoned-ignore",
        &[(
            TOML,
            "[metadata.harbor.lint]\nignore = [\"root-agent\"]\n[metadata.termsmith.lint.ignore]\nnproc = \" \"\n",
        )],
        &[
            "task.toml:4 `nproc` is ignored without a reason",
            "task.toml:2 `root-agent` is ignored without a reason",
        ],
    ),
    row("unknown-lint-rule", &[(TOML, "[metadata.harbor.lint]\nselect = [\"root-agent\"]\n")], &[]),
    row(
        "unknown-lint-rule",
        &[(
            TOML,
            "[metadata.termsmith.lint]\nextend-select = [\"nope\"]\n[metadata.termsmith.lint.ignore]\nnprocs = \"x\"\n",
        )],
        &["task.toml:4 there is no lint rule `nprocs`", "task.toml:2 there is no lint rule `nope`"],
    ),
    row("no-absolute-path", &[], &[]),
    row(
        "no-absolute-path",
        &[("instruction.md", "Sort in.csv.\n")],
        &["instruction.md the instruction names no absolute path"],
    ),
    row("no-canary", &[("instruction.md", "# CANARY 1\n"), ("tests/test.sh", "# canary\n")], &[]),
    row("no-canary", &[("instruction.md", "Do it.\n")], &["instruction.md no canary"]),
    row("instruction-suffix", &[("instruction.md", "You have 600 seconds to complete this task.")], &[]),
    row(
        "instruction-suffix",
        &[],
        &["instruction.md does not say \"You have 600 seconds to complete this task.\""],
    ),
    row(
        "test-file-references",
        &[(TEST, "open('/app/out.csv')\nopen('/app/in.csv')\nopen('/app/secret.txt')\n")],
        &[],
    ),
    row(
        "test-file-references",
        &[(TEST, "\nx = open('/app/report.json')\n"), ("solution/solve.sh", "echo > /app/report.json\n")],
        &[
            "tests/test_outputs.py:2 the reference writes `/app/report.json` and the tests read it, but the instruction does not name it",
        ],
    ),
];
