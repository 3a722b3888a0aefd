//! Words of a command that is printed to be pasted into a shell (POSIX.1-2024, XCU 2.2).

use std::ffi::OsStr;
use std::path::Path;

use crate::is_unprintable;

/// Quotes a word for a shell where necessary.
///
/// What a terminal would interpret becomes `"$(printf '\033')"`, so that the command survives being printed; so do
/// backticks, which mark commands in advice.
pub fn shell_word(word: impl AsRef<OsStr>) -> String {
    let bytes = word.as_ref().as_encoded_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./=%+,:@".contains(byte);
    // zsh replaces `=command` by the command's path.
    if !bytes.is_empty() && bytes[0] != b'=' && bytes.iter().all(is_plain) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut quoted = Quoted::default();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_unprintable(c) || c == '`' {
                quoted.octal(c.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                quoted.literal(c);
            }
        }
        quoted.octal(chunk.invalid());
    }
    quoted.end()
}

/// Quotes a path for a shell. One that begins with `-` gets `./`, so that no program reads it as an option.
pub fn shell_path(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    if path.as_os_str().as_encoded_bytes().starts_with(b"-") {
        shell_word(Path::new(".").join(path))
    } else {
        shell_word(path)
    }
}

/// Quotes the words of a command for a shell.
pub fn shell_command(words: impl IntoIterator<Item: AsRef<OsStr>>) -> String {
    words.into_iter().map(shell_word).collect::<Vec<_>>().join(" ")
}

/// A quoted word in the making: parts in single quotes, and parts as octal numbers.
#[derive(Default)]
struct Quoted {
    text: String,
    part: Part,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    #[default]
    None,
    Literal,
    Octal,
}

impl Quoted {
    fn switch(&mut self, part: Part) {
        if self.part != part {
            self.text.push_str(match self.part {
                Part::None => "",
                Part::Literal => "'",
                Part::Octal => "')\"",
            });
            self.text.push_str(match part {
                Part::None => "",
                Part::Literal => "'",
                Part::Octal => "\"$(printf '",
            });
            self.part = part;
        }
    }

    fn literal(&mut self, c: char) {
        self.switch(Part::Literal);
        if c == '\'' { self.text.push_str(r"'\''") } else { self.text.push(c) }
    }

    fn octal(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.switch(Part::Octal);
            self.text.push_str(&format!("\\{byte:03o}"));
        }
    }

    fn end(mut self) -> String {
        self.switch(Part::None);
        if self.text.is_empty() { "''".to_owned() } else { self.text }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::process::Command;

    use super::*;
    use crate::printable;

    /// Returns the words that a shell passes to a program.
    fn parsed(command: &str) -> Vec<Vec<u8>> {
        let output = Command::new("sh").args(["-c", &format!("printf '%s\\0' {command}")]).output().expect("a shell");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        let mut words: Vec<Vec<u8>> = output.stdout.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        words.pop();
        words
    }

    #[test]
    fn shell_reads_back_the_same_words() {
        let every_byte: Vec<u8> = (1..=255).collect();
        let words: Vec<&OsStr> = [
            "",
            "plain",
            "a b",
            "it's",
            "\"",
            "$(touch x)",
            "`touch x`",
            "a\nb",
            "\n",
            "-rf",
            "--",
            "~",
            "*",
            "a;b",
            "#a",
            "\\",
            "%s",
            "!!",
            "=ls",
            "a\tb",
            "\u{1b}[31mred\u{9b}",
            "\u{202e}gpj",
            "é 日本",
            "${HOME}",
            "a&b|c>d<e",
            "'",
        ]
        .iter()
        .map(OsStr::new)
        .chain([OsStr::from_bytes(b"\xff\xfe"), OsStr::from_bytes(&every_byte)])
        .collect();
        let command = shell_command(&words);
        assert_eq!(printable(&command), command, "a terminal shows the command as it is");
        let expected: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        assert_eq!(parsed(&command), expected, "{command}");
    }

    #[test]
    fn words_are_quoted_only_if_needed() {
        assert_eq!(shell_word("/a/b-1.sh"), "/a/b-1.sh");
        assert_eq!(shell_word("/a b/it's"), r"'/a b/it'\''s'");
        assert_eq!(shell_word("$(x)"), "'$(x)'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("a\u{1b}b"), r#"'a'"$(printf '\033')"'b'"#);
    }

    #[test]
    fn paths_that_look_like_options_get_a_directory() {
        assert_eq!(shell_path("-rf"), "./-rf");
        assert_eq!(shell_path("-"), "./-");
        assert_eq!(shell_path("- x"), "'./- x'");
        assert_eq!(shell_path("a-b"), "a-b");
        let path = std::ffi::OsString::from_vec(b"-\xff".to_vec());
        assert_eq!(shell_path(&path), r#"'./-'"$(printf '\377')""#);
    }
}
