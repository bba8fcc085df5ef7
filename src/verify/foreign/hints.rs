//! Reasons why correct work on a foreign task may not pass here, e.g. a service that nobody starts.

use super::Mode;
use crate::sandbox::ImageConfig;

/// Text for the message that a reference does not pass. Empty if no reason is known.
pub(in crate::verify) fn hint(mode: &Mode, image: &ImageConfig) -> String {
    let mut hints = Vec::new();
    let command = image.command.join(" ");
    if !only_waits(&command) {
        hints.push(format!("the image's command (`CMD {command}`) is not run, neither here nor by Harbor"));
    }
    if let Mode::Separate { artifacts, .. } = mode {
        hints.push(format!("its tests see only these artifacts: {}", artifacts.join(", ")));
    }
    hints.join("; ")
}

/// Whether a command only opens a shell, or waits for ever.
fn only_waits(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    match program.rsplit('/').next().unwrap_or(program) {
        "" | "sleep" => true,
        // Without a script these programs read their standard input.
        "bash" | "sh" | "dash" | "ash" | "zsh" | "python" | "python3" | "node" | "irb" | "jshell" => {
            words.all(|word| word.starts_with('-') && word != "-c")
        }
        "tail" => command.ends_with("/dev/null"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_do_something_are_told() {
        let check = |command: &str, expect: bool| assert_eq!(only_waits(command), expect, "{command}");
        check("", true);
        check("bash", true);
        check("/bin/bash -l", true);
        check("sleep infinity", true);
        check("tail -f /dev/null", true);
        check("python3", true);
        check("/bin/sh -c redis-server", false);
        check("redis-server", false);
        check("python3 app.py", false);
    }
}
