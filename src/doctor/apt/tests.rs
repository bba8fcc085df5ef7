//! Sources lists as they are found on real systems (addresses changed).

use super::super::fake::Machine;
use super::*;

/// What an image for `bookworm` would get, given `/etc/apt/<name>` with this text.
fn check(codename: Option<&str>, files: &[(&str, &str)], expected: &[&str]) {
    let mut machine = Machine::new();
    for (name, text) in files {
        machine = machine.file(&format!("/etc/apt/{name}"), text);
    }
    assert_eq!(debian_lines(&machine.system(), codename, "bookworm"), expected, "{files:?}");
}

const BOOKWORM: Option<&str> = Some("bookworm");

#[test]
fn one_line_sources_are_read() {
    check(
        BOOKWORM,
        &[(
            "sources.list",
            "# deb cdrom:[Debian GNU/Linux 12]/ bookworm main\n\
             deb http://mirror.example/debian/ bookworm main contrib # ours\n\
             deb-src http://mirror.example/debian bookworm main\n\
             deb [ arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg ] http://mirror.example/debian bookworm-updates main\n\
             deb\t[arch=amd64]\thttp://security.example/debian-security\tbookworm-security\tmain\n",
        )],
        &[
            "deb http://mirror.example/debian bookworm main",
            "deb http://mirror.example/debian bookworm-updates main",
            "deb http://security.example/debian-security bookworm-security main",
        ],
    );
    check(
        BOOKWORM,
        &[("sources.list", "deb https://m.example/d stable main")],
        &["deb https://m.example/d bookworm main"],
    );
}

#[test]
fn deb822_sources_are_read() {
    let stanzas = "# a comment\n\
        Types: deb deb-src\n\
        # another, within\n\
        URIs: http://mirror.example/debian\n\
        Suites: bookworm\n bookworm-updates\n\
        Components: main\n\
        Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\
        \n\
        types: deb\n\
        uris: http://mirror.example/debian-security/\n\
        suites: bookworm-security\n\
        components: main contrib\n";
    check(
        BOOKWORM,
        &[("sources.list.d/debian.sources", stanzas)],
        &[
            "deb http://mirror.example/debian bookworm main",
            "deb http://mirror.example/debian bookworm-updates main",
            "deb http://mirror.example/debian-security bookworm-security main",
        ],
    );
    let disabled = format!(
        "Enabled: no\n{}",
        "Types: deb\nURIs: http://m.example/debian\nSuites: bookworm\nComponents: main\n"
    );
    check(BOOKWORM, &[("sources.list.d/debian.sources", &disabled)], &[]);
    let sources_only = "Types: deb-src\nURIs: http://m.example/debian\nSuites: bookworm\nComponents: main\n";
    check(BOOKWORM, &[("sources.list.d/debian.sources", sources_only)], &[]);
}

#[test]
fn another_release_of_debian_has_ours_on_its_mirror() {
    let trixie =
        "Types: deb\nURIs: http://m.example/debian\nSuites: trixie trixie-updates\nComponents: main\n";
    let expected =
        ["deb http://m.example/debian bookworm main", "deb http://m.example/debian bookworm-updates main"];
    check(Some("trixie"), &[("sources.list.d/debian.sources", trixie)], &expected);
    check(
        None,
        &[("sources.list", "deb http://m.example/debian sid main")],
        &["deb http://m.example/debian bookworm main"],
    );
}

#[test]
fn other_archives_are_not_taken_for_debian() {
    let debian = "deb http://m.example/pub/debian bookworm main";
    let php = "deb https://php.example bookworm main";
    let expected = ["deb http://m.example/pub/debian bookworm main"];
    check(BOOKWORM, &[("sources.list", debian), ("sources.list.d/a.list", php)], &expected);
    check(BOOKWORM, &[("sources.list", php), ("sources.list.d/a.list", debian)], &expected);
    // The one with updates is Debian, whatever it is called.
    let named = "deb http://m.example/x bookworm main\ndeb http://m.example/x bookworm-updates main";
    let expected = ["deb http://m.example/x bookworm main", "deb http://m.example/x bookworm-updates main"];
    check(BOOKWORM, &[("sources.list", debian), ("sources.list.d/a.list", named)], &expected);
    for foreign in [
        "deb https://engine.example/linux/debian bookworm stable",
        "deb https://node.example/node_20.x nodistro main",
        "deb http://pg.example/apt bookworm-pgdg main",
        "deb http://archive.example/ubuntu noble main universe",
    ] {
        check(BOOKWORM, &[("sources.list", foreign)], &[]);
    }
}

#[test]
fn only_addresses_that_an_image_may_carry_are_used() {
    for uri in
        ["file:/srv/debian", "cdrom:[x]/", "http://user:secret@m.example/debian", "mirror+file:/nowhere"]
    {
        check(BOOKWORM, &[("sources.list", &format!("deb {uri} bookworm main"))], &[]);
    }
    check(
        BOOKWORM,
        &[
            ("sources.list", "deb mirror+file:///etc/apt/mirrors/debian.list bookworm main"),
            (
                "mirrors/debian.list",
                "https://cloud.example/debian/\tpriority:1\nhttps://other.example/debian\n",
            ),
        ],
        &["deb https://cloud.example/debian bookworm main"],
    );
}

#[test]
fn files_that_apt_ignores_are_ignored() {
    check(BOOKWORM, &[("sources.list.d/debian.list.save", "deb http://m.example/debian bookworm main")], &[]);
    check(BOOKWORM, &[], &[]);
    check(
        BOOKWORM,
        &[("sources.list", "deb\ndebian x\ndeb [ http://m.example/debian bookworm main\n\0\u{fffd}")],
        &[],
    );
}

/// What is run to install `pkg`, and how it ends.
fn check_install(os_release: &str, uid: u32, expected: Result<&[&str], &str>) {
    let machine = Machine::new().file("/etc/os-release", os_release).uid(uid);
    let mut printed = Vec::new();
    let result = install(
        &machine.system(),
        &["pkg"],
        &mut Events::new(&mut |event| printed.push(format!("{event:?}"))),
    );
    match expected {
        Ok(commands) => {
            result.unwrap();
            assert_eq!(machine.commands(), commands);
            assert!(printed[0].contains("Installing pkg (system packages"), "{printed:?}");
        }
        Err(message) => {
            assert_eq!(result.unwrap_err().explain(), message);
            assert_eq!(printed, [""; 0], "nothing is announced that does not happen");
        }
    }
}

#[test]
fn packages_are_installed_as_root_on_debian_and_its_kin() {
    let commands = [
        "env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=180 update -q",
        "env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=180 install -y --no-install-recommends --no-remove pkg",
    ];
    check_install("ID=debian\n", 0, Ok(&commands));
    check_install("ID=ubuntu\n", 0, Ok(&commands));
    check_install(
        "ID=debian\n",
        1000,
        Err("this needs root, and `sudo` asks for a password or is not installed"),
    );
    check_install(
        "ID=fedora\nNAME=Fedora\n",
        0,
        Err("Fedora is not based on Debian, so its package names are unknown"),
    );
}

proptest::proptest! {
    #[test]
    fn no_sources_list_makes_the_parsers_panic(text: String) {
        let _ = parse_one_line(&text);
        let _ = parse_one_line(&format!("deb [{text}"));
        let _ = parse_deb822(&text);
        let _ = parse_deb822(&format!("Types: deb\n{text}"));
    }
}
