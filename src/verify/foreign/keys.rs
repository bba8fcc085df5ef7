//! Keys of a foreign `task.toml` that decide a verdict. If trials here do not carry out a key, the
//! task is refused and the key is named, because the verdict would not be Harbor's. The facts are
//! from `models/task/` and `trial/` of harbor 0.24.

use std::collections::BTreeMap;

use super::{Unsupported, limits};
use crate::harbor::{Environment, HarborTask, Manifest, StepEntry, Verifier};
use crate::model::Limits;
use crate::sandbox::Network;

/// Harbor's network mode of an environment that declares none.
const PUBLIC: &str = "public";

/// A value with the key that declares it.
type Declared<'a> = (String, &'a str);

/// The task itself, or one of its steps. Each has an agent and a verifier.
#[derive(Clone, Copy)]
struct Place<'a> {
    manifest: &'a Manifest,
    step: Option<(usize, &'a StepEntry)>,
}

/// The places of a task that are judged: its steps, or the task itself if it has none.
fn places(manifest: &Manifest) -> Vec<Place<'_>> {
    match manifest.steps.as_deref().unwrap_or_default() {
        [] => vec![Place { manifest, step: None }],
        steps => steps.iter().enumerate().map(|step| Place { manifest, step: Some(step) }).collect(),
    }
}

impl<'a> Place<'a> {
    /// The name of a step's key, e.g. `steps[0].agent.user`, as lint prints it.
    fn step_key(&self, key: &str) -> String {
        self.step.map_or_else(|| key.to_owned(), |(index, _)| format!("steps[{index}].{key}"))
    }

    /// The step's value, or else the task's value, with the key that declares it.
    fn first<T>(
        &self,
        key: &str,
        of_step: impl Fn(&'a StepEntry) -> Option<T>,
        of_task: impl Fn(&'a Manifest) -> Option<T>,
    ) -> Option<(String, T)> {
        let own = self.step.and_then(|(_, step)| of_step(step)).map(|value| (self.step_key(key), value));
        own.or_else(|| Some((key.to_owned(), of_task(self.manifest)?)))
    }

    /// Harbor's precedence of verifier modes (`models/task/verifier_mode.py`): an explicit mode
    /// comes first. Otherwise an environment of the tests' own implies `separate`.
    fn is_separate(&self) -> bool {
        let of = |verifier: &Verifier| match verifier.environment_mode.as_deref() {
            Some(mode) => Some(mode == "separate"),
            None => verifier.environment.as_ref().map(|_| true),
        };
        let own = self.step.and_then(|(_, step)| of(step.verifier.as_ref()?));
        own.or_else(|| of(self.manifest.verifier.as_ref()?)).unwrap_or(false)
    }

    /// The environment that is declared for the tests alone, with its key.
    fn tests_environment(&self) -> Option<(String, &'a Environment)> {
        self.first(
            "verifier.environment",
            |step| step.verifier.as_ref()?.environment.as_ref(),
            |manifest| manifest.verifier.as_ref()?.environment.as_ref(),
        )
    }

    fn environment_network(&self) -> Declared<'a> {
        let mode = self.manifest.environment.as_ref().and_then(|it| it.network_mode.as_deref());
        ("environment.network_mode".to_owned(), mode.unwrap_or(PUBLIC))
    }

    fn solver_network(&self) -> Declared<'a> {
        let declared = self.first(
            "agent.network_mode",
            |step| step.agent.as_ref()?.network_mode.as_deref(),
            |manifest| manifest.agent.as_ref()?.network_mode.as_deref(),
        );
        declared.unwrap_or_else(|| self.environment_network())
    }

    fn tests_network(&self) -> Declared<'a> {
        let declared = self.first(
            "verifier.network_mode",
            |step| step.verifier.as_ref()?.network_mode.as_deref(),
            |manifest| manifest.verifier.as_ref()?.network_mode.as_deref(),
        );
        let of_tests = || {
            let (key, environment) = self.tests_environment().filter(|_| self.is_separate())?;
            let mode = environment.network_mode.as_deref().unwrap_or(PUBLIC);
            Some((format!("{key}.network_mode"), mode))
        };
        declared.or_else(of_tests).unwrap_or_else(|| self.environment_network())
    }
}

/// Whether the tests run in a container of their own.
pub(super) fn is_separate(manifest: &Manifest) -> Result<bool, Unsupported> {
    let places = places(manifest);
    let separate = places.iter().filter(|place| place.is_separate()).count();
    if separate == 0 || separate == places.len() {
        return Ok(separate > 0);
    }
    Err(Unsupported("`environment_mode` of the verifier differs between steps".to_owned()))
}

/// The network of the trial.
pub(super) fn network(manifest: &Manifest) -> Result<Network, Unsupported> {
    let networks: Vec<_> =
        places(manifest).iter().flat_map(|place| [place.solver_network(), place.tests_network()]).collect();
    for pair in networks.windows(2) {
        if let [(one, mode), (other, unlike)] = pair
            && mode != unlike
        {
            let message =
                format!("`{one}` is `{mode}` and `{other}` is `{unlike}`, and a trial has one network");
            return Err(Unsupported(message));
        }
    }
    match networks.first().map_or(PUBLIC, |(_, mode)| *mode) {
        PUBLIC => Ok(Network::Public),
        "no-network" => Ok(Network::None),
        other => Err(Unsupported(format!("network mode `{other}` needs a filtering proxy"))),
    }
}

/// Refuses keys that trials ignore. `given` are the limits of the trial's containers.
pub(super) fn check(task: &HarborTask, separate: bool, given: &Limits) -> Result<(), Unsupported> {
    let manifest = &task.manifest;
    let environment = manifest.environment.clone().unwrap_or_default();
    let mut ignored: Vec<String> = Vec::new();
    ignored.extend(environment.healthcheck.is_some().then(|| "environment.healthcheck".to_owned()));
    let collects = |verifier: Option<&Verifier>| {
        verifier.and_then(|verifier| verifier.collect.as_ref()).is_some_and(|hooks| !hooks.is_empty())
    };
    ignored.extend(collects(manifest.verifier.as_ref()).then(|| "verifier.collect".to_owned()));
    for place in places(manifest) {
        if let Some((_, step)) = place.step {
            ignored.extend(step.healthcheck.is_some().then(|| place.step_key("healthcheck")));
            ignored.extend(collects(step.verifier.as_ref()).then(|| place.step_key("verifier.collect")));
        }
        if !separate {
            continue;
        }
        if let Some((_, step)) = place.step {
            ignored.extend(unlisted(manifest, step).then(|| place.step_key("artifacts")));
            let images = ["Dockerfile", "docker-compose.yaml"];
            let images = images.map(|name| format!("steps/{}/tests/{name}", step.name));
            ignored.extend(images.into_iter().find(|file| task.files.get(file).is_some()));
        }
        if let Some((key, own)) = place.tests_environment() {
            ignored.extend(unlike(&key, own, &environment, given)?);
        }
    }
    if separate {
        ignored.extend(
            manifest
                .artifacts
                .iter()
                .flatten()
                .enumerate()
                .filter_map(|(index, artifact)| Some(format!("artifacts[{index}].{}", partial(artifact)?))),
        );
    }
    match ignored.into_iter().next() {
        Some(key) => Err(Unsupported(format!("`{key}` is not carried out"))),
        None => Ok(()),
    }
}

/// The settings at `key` that the tests' container does not meet. More memory or processors than
/// `own` asks for are fine.
fn unlike(
    key: &str,
    own: &Environment,
    solver: &Environment,
    given: &Limits,
) -> Result<Vec<String>, Unsupported> {
    let asked = limits(own, None, None)?;
    let variables = expanded(&format!("{key}.env"), own.env.iter().flatten())?;
    let differ = [
        ("docker_image", own.docker_image.is_some()),
        ("os", own.os.as_deref().is_some_and(|os| os != "linux")),
        ("gpus", own.gpus.is_some_and(|gpus| gpus > 0)),
        ("tpu", own.tpu.is_some()),
        ("cpus", asked.cpus > given.cpus),
        ("memory_mb", asked.memory_mb > given.memory_mb),
        ("storage_mb", asked.storage_mb > given.storage_mb),
        // The tests run in the work directory of their image.
        ("workdir", own.workdir.is_some()),
        ("env", variables != expanded("environment.env", solver.env.iter().flatten())?),
    ];
    Ok(differ.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| format!("{key}.{name}")).collect())
}

/// Whether a step has artifacts that the task does not have.
fn unlisted(manifest: &Manifest, step: &StepEntry) -> bool {
    let listed = |artifact| manifest.artifacts.iter().flatten().any(|other| other == artifact);
    step.artifacts.iter().flatten().any(|artifact| !listed(artifact))
}

/// The key that makes an artifact more than a path of the solver's container, e.g. `exclude`.
fn partial(artifact: &toml::Value) -> Option<&'static str> {
    let table = artifact.as_table()?;
    let excludes = table.get("exclude").and_then(toml::Value::as_array).is_some_and(|some| !some.is_empty());
    let service = table.get("service").and_then(toml::Value::as_str).is_some_and(|name| name != "main");
    excludes.then_some("exclude").or_else(|| service.then_some("service"))
}

/// The variables of a table, e.g. `verifier.env`, as Harbor resolves them on a host that sets none
/// of them.
pub(super) fn expanded<'a>(
    table: &str,
    env: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Result<Vec<(String, String)>, Unsupported> {
    let resolve = |(name, value): (&String, &'a String)| match template(value) {
        None => Ok((name.clone(), value.clone())),
        Some((_, Some(default))) => Ok((name.clone(), default.to_owned())),
        Some((variable, None)) => {
            Err(Unsupported(format!("`{table}.{name}` takes the variable `{variable}` from the host")))
        }
    };
    env.into_iter().map(resolve).collect()
}

/// The variables of the tests. Those of the step replace those of the task.
pub(super) fn tests_env(
    manifest: &Manifest,
    step: Option<(usize, &StepEntry)>,
) -> Result<Vec<(String, String)>, Unsupported> {
    let place = Place { manifest, step };
    let of_step = step.and_then(|(_, step)| step.verifier.as_ref()?.env.as_ref());
    let of_task = manifest.verifier.as_ref().and_then(|verifier| verifier.env.as_ref());
    let is_replaced = |name: &String| of_step.is_some_and(|env: &BTreeMap<_, _>| env.contains_key(name));
    let mut env =
        expanded("verifier.env", of_task.into_iter().flatten().filter(|(name, _)| !is_replaced(name)))?;
    env.extend(expanded(&place.step_key("verifier.env"), of_step.into_iter().flatten())?);
    Ok(env)
}

/// Name and default of `${NAME}` or `${NAME:-default}`. The template must be the whole value
/// (`utils/env.py`).
fn template(value: &str) -> Option<(&str, Option<&str>)> {
    let inside = value.strip_prefix("${")?.strip_suffix('}')?;
    let is_name = |name: &str| !name.is_empty() && !name.contains([':', '}']);
    match inside.split_once(":-") {
        Some((name, default)) if is_name(name) && !default.contains('\n') => Some((name, Some(default))),
        _ if is_name(inside) => Some((inside, None)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Foreign, Mode};
    use super::*;
    use crate::harbor::{find_tasks, parse_manifest, read_task};
    use crate::model::{File, RelPath};

    fn foreign(toml: &str, files: &[&str]) -> Result<Foreign, Unsupported> {
        let (manifest, _) = parse_manifest(toml).unwrap();
        let files = files.iter().map(|path| (RelPath::new(*path).unwrap(), File::text("x")));
        let files = files.collect();
        Foreign::new(&HarborTask { name: "a".to_owned(), manifest, files, findings: Vec::new() })
    }

    #[test]
    fn keys_that_decide_a_verdict_are_carried_out_or_refused() {
        const SEPARATE: &str = "verifier.environment_mode = 'separate'\n";
        let check = |toml: &str, files: &[&str], refused: &str| {
            let found = foreign(toml, files).map(drop).map_err(|Unsupported(why)| why);
            match refused {
                "" => assert_eq!(found, Ok(()), "{toml}"),
                why => assert_eq!(found, Err(why.to_owned()), "{toml}"),
            }
        };
        let ignored = |toml: &str, key: &str| check(toml, &[], &format!("`{key}` is not carried out"));
        check("", &[], "");
        check("environment.os = 'Linux'", &[], "");
        check("environment.os = 'windows'", &[], "it is for another operating system");

        // The tests' own environment.
        for (own, key) in [
            ("docker_image = 'i'", "docker_image"),
            ("os = 'windows'", "os"),
            ("gpus = 1", "gpus"),
            ("cpus = 4", "cpus"),
            ("memory_mb = 8192", "memory_mb"),
            ("storage_mb = 99999", "storage_mb"),
            ("workdir = '/w'", "workdir"),
            ("env = { A = '1' }", "env"),
        ] {
            ignored(&format!("[verifier.environment]\n{own}"), &format!("verifier.environment.{key}"));
            let step = format!("[[steps]]\nname = 'a'\n[steps.verifier.environment]\n{own}");
            ignored(&step, &format!("steps[0].verifier.environment.{key}"));
        }
        check("[verifier.environment]\nos = 'linux'\ncpus = 1\nmemory_mb = 512\ngpus = 0\nenv = {}", &[], "");
        check("environment.memory_mb = 8192\nverifier.environment.memory_mb = 8192", &[], "");
        check("environment.memory_mb = 512\nverifier.environment.memory_mb = 512", &[], "");
        ignored(
            "environment.memory_mb = 512\n[verifier.environment]\ncpus = 1",
            "verifier.environment.memory_mb",
        );
        check("environment.env.A = '1'\nverifier.environment.env.A = '${B:-1}'", &[], "");
        ignored("environment.env.A = '1'\n[verifier.environment]", "verifier.environment.env");
        let why = "`verifier.environment.env.A` takes the variable `B` from the host";
        check("verifier.environment.env.A = '${B}'", &[], why);

        // Networks.
        check("environment.network_mode = 'no-network'", &[], "");
        check("environment.network_mode = 'no-network'\nverifier.network_mode = 'no-network'", &[], "");
        check("agent.network_mode = 'no-network'\nverifier.network_mode = 'no-network'", &[], "");
        let differ = |toml: &str, one: &str, other: &str| {
            let sides = |side: &str| side.replace('=', "` is `");
            let why = format!("`{}` and `{}`, and a trial has one network", sides(one), sides(other));
            check(toml, &[], &why);
        };
        differ(
            "verifier.network_mode = 'no-network'",
            "environment.network_mode=public",
            "verifier.network_mode=no-network",
        );
        differ(
            "agent.network_mode = 'no-network'",
            "agent.network_mode=no-network",
            "environment.network_mode=public",
        );
        differ(
            "environment.network_mode = 'no-network'\n[verifier.environment]",
            "environment.network_mode=no-network",
            "verifier.environment.network_mode=public",
        );
        differ(
            "[[steps]]\nname = 'a'\n[[steps]]\nname = 'b'\nagent.network_mode = 'no-network'",
            "environment.network_mode=public",
            "steps[1].agent.network_mode=no-network",
        );
        check(
            "environment.network_mode = 'allowlist'",
            &[],
            "network mode `allowlist` needs a filtering proxy",
        );

        // Commands and waits of the harness.
        ignored("environment.healthcheck.command = 'true'", "environment.healthcheck");
        ignored("[[verifier.collect]]\ncommand = 'dump'", "verifier.collect");
        check("verifier.collect = []", &[], "");
        ignored("[[steps]]\nname = 'a'\nhealthcheck.command = 'true'", "steps[0].healthcheck");
        ignored(
            "[[steps]]\nname = 'a'\nverifier.collect = [{ command = 'dump' }]",
            "steps[0].verifier.collect",
        );

        // Artifacts only matter if the tests have a container of their own.
        let artifacts = "artifacts = ['/a', { source = '/b', exclude = ['*.o'] }]\n";
        check(artifacts, &[], "");
        ignored(&format!("{artifacts}{SEPARATE}"), "artifacts[1].exclude");
        ignored(
            &format!("artifacts = [{{ source = '/b', service = 'db' }}]\n{SEPARATE}"),
            "artifacts[0].service",
        );
        check(
            &format!("artifacts = [{{ source = '/b', exclude = [], service = 'main' }}]\n{SEPARATE}"),
            &[],
            "",
        );

        // Steps.
        let step = |keys: &str| format!("artifacts = ['/a']\n{SEPARATE}[[steps]]\nname = 'a'\n{keys}");
        check(&step("artifacts = ['/a']"), &[], "");
        ignored(&step("artifacts = ['/a', '/b']"), "steps[0].artifacts");
        check(&step(""), &["steps/a/tests/Dockerfile"], "`steps/a/tests/Dockerfile` is not carried out");
        check("[[steps]]\nname = 'a'", &["steps/a/tests/Dockerfile"], "");
        let mixed = step("[[steps]]\nname = 'b'\nverifier.environment_mode = 'shared'");
        check(&mixed, &[], "`environment_mode` of the verifier differs between steps");
    }

    #[test]
    fn modes_follow_from_the_task_or_from_all_steps() {
        let check = |toml: &str, separate: bool| {
            let mode = foreign(toml, &[]).unwrap().mode;
            assert_eq!(mode != Mode::Shared, separate, "{toml}");
        };
        check("", false);
        check("verifier.environment_mode = 'separate'", true);
        check("[verifier.environment]", true);
        check("[[steps]]\nname = 'a'\nverifier.environment_mode = 'separate'", true);
        check("verifier.environment_mode = 'separate'\n[[steps]]\nname = 'a'", true);
        check(
            "verifier.environment_mode = 'separate'\n[[steps]]\nname = 'a'\nverifier.environment_mode = 'shared'",
            false,
        );
    }

    #[test]
    fn variables_take_their_defaults() {
        let check = |value: &str, expect: Result<&str, &str>| {
            for table in ["environment.env", "solution.env", "verifier.env", "steps[0].verifier.env"] {
                let toml = match table.strip_prefix("steps[0].") {
                    Some(table) => format!("[[steps]]\nname = 'a'\n{table}.A = '{value}'"),
                    None => format!("{table}.A = '{value}'"),
                };
                let found = foreign(&toml, &[]).map(|task| {
                    let [step] = task.steps.as_slice() else { panic!("{toml}") };
                    let all = [&task.environment_env, &task.solution_env, &step.verifier_env];
                    all.into_iter().flatten().cloned().collect::<Vec<_>>()
                });
                let expect = match expect {
                    Ok(value) => Ok(vec![("A".to_owned(), value.to_owned())]),
                    Err(variable) => {
                        Err(Unsupported(format!("`{table}.A` takes the variable `{variable}` from the host")))
                    }
                };
                assert_eq!(found, expect, "{toml}");
            }
        };
        check("1", Ok("1"));
        check("${B:-two words}", Ok("two words"));
        check("${B:-}", Ok(""));
        check("${B:-${C}}", Ok("${C}"));
        check("${B}", Err("B"));
        // Only whole values are templates.
        check("http://${B}/", Ok("http://${B}/"));
        check("${A}${B}", Ok("${A}${B}"));
        check("${}", Ok("${}"));
        check("$B", Ok("$B"));
        // A step replaces the task's variable before Harbor looks it up.
        let task = foreign(
            "verifier.env = { A = '${KEY}', B = '1' }\n[[steps]]\nname = 'a'\nverifier.env.A = '2'",
            &[],
        );
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(task.unwrap().steps[0].verifier_env, [pair("B", "1"), pair("A", "2")]);
    }

    #[test]
    fn the_corpus_is_supported() {
        let corpus = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gauntlet"));
        let tasks = find_tasks(corpus).unwrap().tasks;
        // Some tasks of the corpus cannot be read, on purpose.
        let read: Vec<_> = tasks.iter().filter_map(|dir| read_task(dir).ok()).collect();
        assert!(read.len() > 100, "{}", read.len());
        let refused: Vec<_> =
            read.iter().filter_map(|task| Some((&task.name, Foreign::new(task).err()?))).collect();
        assert_eq!(refused, []);
    }
}
