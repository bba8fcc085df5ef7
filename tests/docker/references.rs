//! Final states with files that name others by absolute paths, e.g. under `/app`. The tests must
//! find there what the solver left, not the pristine files of the image. The clean room and
//! Harbor's separate mode must give the same verdict.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use termsmith::harbor::{DeclaredVerifier, HarborTask, Publication, parse_manifest, write_task};
use termsmith::model::{CheckId, FileTree, Task, Verdict, environment_digest};
use termsmith::sandbox::{Engine, Image, ImageSpec};
use termsmith::verify::{Act, Condition, Foreign, HashedTask, Images, run_trial};
use tokio_util::sync::CancellationToken;

use crate::support::engine::{docker, run};
use crate::support::task::{Shape, task, tree};

/// What a check of a state must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    Passes,
    Fails,
}

use Check::{Fails, Passes};

/// A state, made in a folder of its own.
struct State {
    name: &'static str,
    /// A script that makes the state. It runs in the folder `/app/NAME`, which the image fills with
    /// [`KIT`].
    made_by: &'static str,
    /// Statements of a check. `here` is the folder's path.
    check: &'static str,
    expect: Check,
}

/// A script that fills a state's folder in the image.
const KIT: &str = r#"
printf 'given\n' >given.txt
printf 'given := given\n' >rules.mk
printf '[a]\nname = given\n' >base.ini
printf '[user]\n\tname = given\n' >extra.cfg
printf '<part>given</part>' >part.xml
printf 'def given: "given";\n' >lib.jq
mkdir modules && echo given=1 >modules/given.py
sqlite3 shop.db 'create table t (x); insert into t values (41), (42);'
git init -q repo && cp given.txt repo/
git -C repo add -A && git -C repo -c user.name=a -c user.email=a@b commit -qm given
chmod -R u+w repo/.git
"#;

/// Functions that checks share.
const HELPERS: &str = r#"
import configparser, importlib.util, io, os, pathlib, site, subprocess, sys, tarfile, tempfile, xml.sax, xml.sax.handler
from xml.etree import ElementInclude, ElementTree

from subject import exists, listdir, lpath, path, pristine, read_bytes, read_text

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


def out(*argv, env={}, stdin="", cwd="/"):
    done = subprocess.run(list(map(str, argv)), env={**ENV, **env}, input=stdin, capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def git(*words):
    return out("git", "-c", "safe.directory=*", *words)


def objects_are_whole(objects):
    bare = tempfile.mkdtemp()
    git("init", "-q", "--bare", bare)
    commit = read_text(objects + "/../refs/heads/master").strip()
    env = {"GIT_DIR": bare, "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(path(objects))}
    assert out("git", "cat-file", "blob", commit + ":given.txt", env=env) == "given\n"
"#;

const WHOLE: &str = "objects_are_whole(here + '/repo/.git/objects')";
const CAT: &str = "assert out('cat', lpath(here + '/link.txt')) == 'given\\n'";

const STATES: [State; 34] = [
    State {
        name: "alternates_name_what_was_destroyed",
        made_by: "cd repo/.git/objects; rm -rf ??; echo $HERE/repo/.git/objects >info/alternates",
        check: WHOLE,
        expect: Fails,
    },
    State {
        name: "alternates_name_where_it_was_moved",
        made_by: "cp -a repo/.git/objects store; cd repo/.git/objects; rm -rf ??; echo $HERE/store >info/alternates",
        check: WHOLE,
        expect: Passes,
    },
    State {
        name: "alternates_leave_through_the_root",
        made_by: "cd repo/.git/objects; rm -rf ??; echo ../../../../../../../../../..$HERE/repo/.git/objects >info/alternates",
        check: WHOLE,
        expect: Fails,
    },
    State {
        name: "alternates_name_the_folder_of_arrival",
        made_by: "cp -a repo/.git/objects store; cd repo/.git/objects; rm -rf ??; echo /subject$HERE/store >info/alternates",
        check: WHOLE,
        expect: Fails,
    },
    State {
        name: "object_folders_are_links_to_themselves",
        made_by: "cd repo/.git/objects; for each in ??; do rm -r $each; ln -s $HERE/repo/.git/objects/$each $each; done",
        check: WHOLE,
        expect: Fails,
    },
    State {
        name: "object_folders_are_links_to_a_store",
        made_by: "cp -a repo/.git/objects store; cd repo/.git/objects; for each in ??; do rm -r $each; ln -s $HERE/store/$each; done",
        check: WHOLE,
        expect: Passes,
    },
    State {
        name: "http_alternates_are_not_followed",
        made_by: "cd repo/.git/objects; rm -rf ??; echo $HERE/repo/.git/objects >info/http-alternates",
        check: WHOLE,
        expect: Fails,
    },
    State {
        name: "git_file_names_a_destroyed_repository",
        made_by: "mkdir tree; echo gitdir: $HERE/repo/.git >tree/.git; rm -rf repo",
        check: "assert git('-C', path(here + '/tree'), 'show', 'HEAD:given.txt') == 'given\\n'",
        expect: Fails,
    },
    State {
        name: "git_file_names_a_repository",
        made_by: "mkdir tree; echo gitdir: $HERE/repo/.git >tree/.git",
        check: "assert git('-C', path(here + '/tree'), 'show', 'HEAD:given.txt') == 'given\\n'",
        expect: Passes,
    },
    State {
        name: "linked_worktree",
        made_by: "git -C repo worktree add -q $HERE/tree",
        check: "assert git('-C', path(here + '/tree'), 'show', 'HEAD:given.txt') == 'given\\n'",
        expect: Passes,
    },
    State {
        name: "common_folder_was_destroyed",
        made_by: "mkdir own; cp repo/.git/HEAD own/; echo $HERE/repo/.git >own/commondir; rm -rf repo",
        check: "assert git('--git-dir', path(here + '/own'), 'show', 'HEAD:given.txt') == 'given\\n'",
        expect: Fails,
    },
    State {
        name: "work_tree_was_destroyed",
        made_by: "git -C repo config core.worktree $HERE/repo; rm repo/given.txt",
        check: "git('--git-dir', path(here + '/repo/.git'), 'diff', '--quiet')",
        expect: Fails,
    },
    State {
        name: "included_configuration_was_destroyed",
        made_by: "rm extra.cfg; git -C repo config include.path $HERE/extra.cfg",
        check: "assert git('config', '--includes', '--file', path(here + '/repo/.git/config'), 'user.name') == 'given\\n'",
        expect: Fails,
    },
    State {
        name: "included_configuration",
        made_by: "git -C repo config include.path $HERE/extra.cfg",
        check: "assert git('config', '--includes', '--file', path(here + '/repo/.git/config'), 'user.name') == 'given\\n'",
        expect: Passes,
    },
    State {
        name: "link_to_a_removed_file",
        made_by: "rm given.txt; ln -s $HERE/given.txt link.txt",
        check: CAT,
        expect: Fails,
    },
    State {
        name: "link_to_a_moved_file",
        made_by: "mv given.txt moved.txt; ln -s $HERE/moved.txt link.txt",
        check: CAT,
        expect: Passes,
    },
    State {
        name: "link_to_a_file_of_the_tests",
        made_by: "ln -s /tests/pristine/given.txt link.txt",
        check: CAT,
        expect: Fails,
    },
    State {
        name: "link_to_a_file_of_the_image",
        made_by: "ln -s /usr/lib/os-release link.txt",
        check: "assert 'Debian' in out('cat', lpath(here + '/link.txt'))",
        expect: Passes,
    },
    State {
        name: "link_out_of_the_roots_is_not_followed",
        made_by: "ln -s /usr/lib/os-release link.txt",
        check: "assert exists(here + '/link.txt')",
        expect: Fails,
    },
    State {
        name: "attached_database_was_destroyed",
        made_by: "rm shop.db; echo \"attach '$HERE/shop.db' as s; select sum(x) from s.t;\" >load.sql",
        check: "assert out('sqlite3', ':memory:', stdin=read_text(here + '/load.sql')) == '83\\n'",
        expect: Fails,
    },
    State {
        name: "attached_database",
        made_by: "mv shop.db moved.db; echo \"attach '$HERE/moved.db' as s; select sum(x) from s.t;\" >load.sql",
        check: "assert out('sqlite3', ':memory:', stdin=read_text(here + '/load.sql')) == '83\\n'",
        expect: Passes,
    },
    State {
        name: "included_document_was_destroyed",
        made_by: r#"rm part.xml; echo "<all xmlns:i='http://www.w3.org/2001/XInclude'><i:include href='$HERE/part.xml'/></all>" >all.xml"#,
        check: "all = ElementTree.fromstring(read_text(here + '/all.xml')); ElementInclude.include(all); assert all[0].text == 'given'",
        expect: Fails,
    },
    State {
        name: "included_document",
        made_by: r#"mv part.xml new.xml; echo "<all xmlns:i='http://www.w3.org/2001/XInclude'><i:include href='$HERE/new.xml'/></all>" >all.xml"#,
        check: "all = ElementTree.fromstring(read_text(here + '/all.xml')); ElementInclude.include(all); assert all[0].text == 'given'",
        expect: Passes,
    },
    State {
        name: "entity_of_a_destroyed_file",
        made_by: r#"rm given.txt; echo "<!DOCTYPE a [<!ENTITY e SYSTEM '$HERE/given.txt'>]><a>&e;</a>" >all.xml"#,
        check: "
    reader, words = xml.sax.make_parser(), []
    reader.setFeature(xml.sax.handler.feature_external_ges, True)
    handler = xml.sax.handler.ContentHandler()
    handler.characters = words.append
    reader.setContentHandler(handler)
    reader.parse(io.BytesIO(read_bytes(here + '/all.xml')))
    assert 'given' in ''.join(words)",
        expect: Fails,
    },
    State {
        name: "path_file_names_a_destroyed_folder",
        made_by: "rm -r modules; mkdir site; echo $HERE/modules >site/a.pth",
        check: "site.addsitedir(str(path(here + '/site'))); assert importlib.util.find_spec('given')",
        expect: Fails,
    },
    State {
        name: "archive_links_to_a_destroyed_file",
        made_by: "rm given.txt; ln -s $HERE/given.txt link.txt; tar cf all.tar link.txt; rm link.txt",
        check: "
    to = tempfile.mkdtemp()
    out('tar', '-xPf', path(here + '/all.tar'), '-C', to)
    assert out('cat', to + '/link.txt') == 'given\\n'",
        expect: Fails,
    },
    State {
        name: "settings_include_a_destroyed_file",
        made_by: "rm base.ini; printf '[all]\\nbase = %s/base.ini\\n' $HERE >all.ini",
        check: "
    all = configparser.ConfigParser()
    all.read_string(read_text(here + '/all.ini'))
    all.read(all['all']['base'])
    assert all['a']['name'] == 'given'",
        expect: Fails,
    },
    State {
        name: "makefile_includes_a_destroyed_file",
        made_by: "rm rules.mk; printf 'include %s/rules.mk\\nall:\\n\\t@echo $(given)\\n' $HERE >Makefile",
        check: "assert out('make', '-sn', '-f', path(here + '/Makefile')) == 'echo given\\n'",
        expect: Fails,
    },
    State {
        name: "makefile_includes_a_file",
        made_by: "mv rules.mk new.mk; printf 'include %s/new.mk\\nall:\\n\\t@echo $(given)\\n' $HERE >Makefile",
        check: "assert out('make', '-sn', '-f', path(here + '/Makefile')) == 'echo given\\n'",
        expect: Passes,
    },
    State {
        name: "filter_includes_a_destroyed_file",
        made_by: "rm lib.jq; echo \"include \\\"lib\\\" {search: \\\"$HERE\\\"}; given\" >all.jq",
        check: "assert out('jq', '-nr', '-f', path(here + '/all.jq')) == 'given\\n'",
        expect: Fails,
    },
    State {
        name: "checksums_of_a_destroyed_file",
        made_by: "sha256sum $HERE/given.txt >SUMS; rm given.txt",
        check: "out('sha256sum', '--quiet', '-c', path(here + '/SUMS'))",
        expect: Fails,
    },
    State {
        name: "checksums_of_a_changed_file",
        made_by: "sha256sum $HERE/given.txt >SUMS; echo other >given.txt",
        check: "out('sha256sum', '--quiet', '-c', path(here + '/SUMS'))",
        expect: Fails,
    },
    State {
        name: "list_names_a_new_file",
        made_by: "echo new >new.txt; printf '%s\\0' $HERE/new.txt >list",
        check: "assert out('sort', '--files0-from', path(here + '/list')) == 'new\\n'",
        expect: Passes,
    },
    State {
        name: "test_reads_a_path_from_a_file",
        made_by: "echo /tests/pristine/given.txt >where",
        check: "assert open(read_text(here + '/where').strip()).read() == 'given\\n'",
        expect: Fails,
    },
];

/// One task with a check for each state, and a script that makes all states.
fn states() -> (Task, FileTree) {
    let mut task = task(Shape::Files);
    let dockerfile = task.environment.text("Dockerfile").unwrap();
    let mut dockerfile = format!("{dockerfile}COPY kit.sh /kit.sh\n");
    let mut solution = String::new();
    let mut tests = HELPERS.to_owned();
    let names = STATES.map(|state| state.name).join(" ");
    writeln!(
        dockerfile,
        "RUN for name in {names}; do mkdir -p /app/$name && cd /app/$name && sh -e /kit.sh || exit; done"
    )
    .unwrap();
    for State { name, made_by, check, .. } in &STATES {
        writeln!(solution, "(HERE=/app/{name}; cd $HERE; set -e; {made_by}) || exit 1").unwrap();
        let check = if check.starts_with('\n') { (*check).to_owned() } else { format!("\n    {check}") };
        writeln!(tests, "\n\ndef test_{name}():\n    here = '/app/{name}'{check}").unwrap();
    }
    // No state may reach `pristine/given.txt`. The checks do not need it.
    let more = tree(&[("test_outputs.py", tests.as_str()), ("pristine/given.txt", "given\n")]);
    task.tests.files.extend(more.files);
    task.environment.files.extend(tree(&[("Dockerfile", dockerfile.as_str()), ("kit.sh", KIT)]).files);
    task.checks =
        STATES.iter().map(|state| CheckId::parse(format!("test_{}", state.name)).unwrap()).collect();
    task.submission.roots = vec!["/app".to_owned()];
    (task, tree(&[("solve.sh", solution.as_str())]))
}

async fn image(engine: &Engine, task: &Task) -> Image {
    let digest = environment_digest(&task.environment, "core");
    let timeout = Duration::from_secs(600);
    engine
        .ensure_image(&ImageSpec { digest: digest.as_str(), context: &task.environment, timeout })
        .await
        .unwrap()
}

/// The same task, as Harbor judges it with the tests in a separate container.
fn separate(task: &Task) -> Foreign {
    let publication = Publication { verifier: DeclaredVerifier::Separate, ..Publication::default() };
    let files = write_task(task, &publication).unwrap();
    let (manifest, findings) = parse_manifest(files.text("task.toml").unwrap()).unwrap();
    Foreign::new(&HarborTask { name: "states".to_owned(), manifest, files, findings }).unwrap()
}

fn checks(verdict: &Verdict) -> BTreeMap<String, bool> {
    verdict.checks.iter().map(|check| (check.id.as_str().to_owned(), check.passed)).collect()
}

#[test]
fn absolute_references_lead_to_what_the_solver_left_in_the_clean_room_and_under_harbor() {
    run(async {
        let Some(engine) = docker().await else { return };
        let (task, solution) = states();
        let image = image(&engine, &task).await;
        let never = CancellationToken::new();
        let act = Act::Solve(&solution);
        let images = Images::from(image);
        let hashed = HashedTask::new(&task, environment_digest(&task.environment, "core")).unwrap();
        let clean = run_trial(&engine, &images, &hashed, act, Condition::Ordinary, &never).await.unwrap();
        let foreign = separate(&task);
        let apart = run_trial(&engine, &images, &foreign, act, Condition::Ordinary, &never).await.unwrap();
        let expect: BTreeMap<_, _> =
            STATES.iter().map(|state| (format!("test_{}", state.name), state.expect == Passes)).collect();
        let messages = &clean.log.verifier.messages;
        assert_eq!(checks(&clean.verdict), expect, "clean room, {:?}\n{messages:#?}", clean.exit);
        let output = &apart.log.verifier.output;
        assert_eq!(checks(&apart.verdict), expect, "separate, {:?}\n{output}", apart.exit);
    });
}
