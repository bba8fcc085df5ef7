//! Which family of Linux distributions this is (`os-release(5)`), which decides how packages are installed.

use super::System;

/// Families that differ in what the doctor can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Debian: packages by apt, and the system's own mirror carries Debian.
    Debian {
        /// Its code name, which testing and unstable may lack.
        codename: Option<String>,
    },
    /// Ubuntu and others based on Debian: packages by apt, from an archive of their own.
    Derivative { name: String },
    /// Any other distribution, with the name from its `os-release`.
    Other { name: String },
}

/// Reads `/etc/os-release`, or `/usr/lib/os-release` where that is missing.
pub(super) fn family(system: &System) -> Family {
    let read = |path: &str| std::fs::read_to_string(system.path(path)).ok();
    let text = read("/etc/os-release").or_else(|| read("/usr/lib/os-release")).unwrap_or_default();
    parse_os_release(&text)
}

fn parse_os_release(text: &str) -> Family {
    let value = |key: &str| {
        text.lines()
            .filter_map(|line| line.trim().split_once('='))
            .rfind(|(name, _)| *name == key)
            .map(|(_, value)| unquote(value))
            .filter(|value| !value.is_empty())
    };
    let name =
        value("PRETTY_NAME").or_else(|| value("NAME")).unwrap_or_else(|| "an unknown system".to_owned());
    let id = value("ID").unwrap_or_default();
    let like = value("ID_LIKE").unwrap_or_default();
    if id == "debian" {
        Family::Debian { codename: value("VERSION_CODENAME") }
    } else if id == "ubuntu" || like.split(' ').any(|word| word == "debian" || word == "ubuntu") {
        Family::Derivative { name }
    } else {
        Family::Other { name }
    }
}

/// Undoes the shell quoting that `os-release` allows: either kind of quotes, backslashes within double ones.
fn unquote(value: &str) -> String {
    if let Some(inner) = value.strip_prefix('\'').and_then(|v| v.strip_suffix('\'')) {
        return inner.to_owned();
    }
    let inner = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
    let mut plain = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        plain.push(if character == '\\' { characters.next().unwrap_or('\\') } else { character });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &Family) {
        assert_eq!(parse_os_release(text), *expected, "{text}");
    }

    fn debian(codename: Option<&str>) -> Family {
        Family::Debian { codename: codename.map(str::to_owned) }
    }

    #[test]
    fn families_are_recognized() {
        let derivative = |name: &str| Family::Derivative { name: name.to_owned() };
        let other = |name: &str| Family::Other { name: name.to_owned() };
        check(
            "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_CODENAME=bookworm\nID=debian\n",
            &debian(Some("bookworm")),
        );
        check("PRETTY_NAME=\"Debian GNU/Linux trixie/sid\"\nID=debian\n", &debian(None));
        check("ID='debian'\nVERSION_CODENAME='trixie'\n", &debian(Some("trixie")));
        check(
            "PRETTY_NAME=\"Ubuntu 24.04.1 LTS\"\nVERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\nUBUNTU_CODENAME=noble\n",
            &derivative("Ubuntu 24.04.1 LTS"),
        );
        check("NAME=\"Linux Mint\"\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", &derivative("Linux Mint"));
        check("NAME=\"Kali \\\"rolling\\\"\"\nID=kali\nID_LIKE=debian\n", &derivative("Kali \"rolling\""));
        check("PRETTY_NAME=\"Fedora Linux 41\"\nID=fedora\n", &other("Fedora Linux 41"));
        check("NAME=\"Rocky Linux\"\nID=rocky\nID_LIKE=\"rhel centos fedora\"\n", &other("Rocky Linux"));
        check("# ID=debian\n", &other("an unknown system"));
        check("", &other("an unknown system"));
    }
}
