//! Rules that no regular expression can state, one file per theme. Severity, hint and explanation of each are in
//! `templates/lint/<id>.toml`, as for the patterns.

mod clock;
mod compose;
mod config;
mod draft;
mod files;
mod image;
mod instruction;
mod metadata;
mod network;
mod python;
mod script;

use super::rule::Function;

/// Every function, by the id of its rule.
pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("agent-image-test-leak", image::test_leak),
    ("answer-in-context", image::answer_in_context),
    ("apt-lists-left", image::apt_lists_left),
    ("apt-version-pin", image::apt_version_pin),
    ("apt-without-update", image::apt_without_update),
    ("artifact-log-overlap", config::artifact_log_overlap),
    ("check-without-assert", python::without_assert),
    ("compose-additional-capabilities", compose::capabilities),
    ("compose-external-bind-mount", compose::external_bind),
    ("compose-host-namespace", compose::host_namespace),
    ("compose-privileged", compose::privileged),
    ("compose-symlink-bind-mount", compose::symlink_bind),
    ("compose-writable-bind-mount", compose::writable_bind),
    ("copy-source", image::copy_source),
    ("deprecated-config-field", config::deprecated_field),
    ("existence-only-asserts", python::existence_only),
    ("few-asserts", python::few_asserts),
    ("few-checks", draft::few_checks),
    ("few-wrong-solutions", draft::few_wrong_solutions),
    ("git-history-in-image", image::git_history),
    ("gpu-types", metadata::gpu_types),
    ("hardcoded-solution", script::hardcoded_solution),
    ("host-variable", config::host_variable),
    ("instruction-suffix", instruction::suffix),
    ("invalid-compose", compose::invalid),
    ("invalid-task-config", config::invalid),
    ("invalid-task-files", files::invalid),
    ("lenient-zip", python::lenient_zip),
    ("masked-test-exit", script::masked_exit),
    ("no-agent-timeout", metadata::no_agent_timeout),
    ("no-reward-written", script::no_reward_written),
    ("non-executable-run", image::non_executable_run),
    ("overlapping-artifacts", config::overlapping_artifacts),
    ("prior-trajectory", files::prior_trajectory),
    ("reward-only-on-success", script::reward_only_on_success),
    ("root-agent", image::root_agent),
    ("same-check-twice", python::same_check_twice),
    ("shared-verifier", config::shared_verifier),
    ("swallowed-assertion", python::swallowed),
    ("symbolic-link", files::symbolic_link),
    ("task-fields", metadata::fields),
    ("task-package-name", metadata::package_name),
    ("task-slug", metadata::slug),
    ("task-timeout", metadata::timeout),
    ("test-file-references", instruction::file_references),
    ("undocumented-check", python::undocumented),
    ("unknown-config-field", config::unknown_field),
    ("unknown-lint-rule", config::unknown_lint_rule),
    ("unpinned-image", image::unpinned),
    ("unpinned-python-dependency", network::unpinned_python),
    ("unreasoned-ignore", config::unreasoned_ignore),
    ("unscaled-time-limit", clock::unscaled_limit),
    ("verifier-imports-reference", python::imports_reference),
    ("verifier-network-download", network::verifier_download),
    ("verifier-runtime-install", network::verifier_install),
    ("windows-task", metadata::windows),
];
