//! Escapes characters that a terminal would interpret.

use std::borrow::Cow;

/// Whether a terminal could interpret this character: a control character (C0 except line feed and tab, DEL, C1), or one
/// that changes the direction of text (Unicode's property `Bidi_Control`), so that it reads differently from what it is.
pub fn is_unprintable(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        _ => c.is_control(),
    }
}

/// Escapes what a terminal could interpret as `\u001b`. This is also an escape of JSON strings, so a JSON document keeps
/// its meaning. Line ends (`\n`, `\r\n`) and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    match printable_bytes(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// [`printable`] for bytes; those that are not UTF-8 become `\xff`.
pub fn printable_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    let is_plain = |text: &str| !text.chars().any(is_unprintable);
    if std::str::from_utf8(bytes).is_ok_and(is_plain) {
        return Cow::Borrowed(bytes);
    }
    let mut shown = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        let mut characters = chunk.valid().chars().peekable();
        while let Some(c) = characters.next() {
            if is_unprintable(c) && !(c == '\r' && characters.peek() == Some(&'\n')) {
                shown.push_str(&format!("\\u{:04x}", u32::from(c)));
            } else {
                shown.push(c);
            }
        }
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    Cow::Owned(shown.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_that_a_terminal_interprets_is_escaped() {
        let controls = (0..0x20).chain([0x7f]).chain(0x80..0xa0).filter(|code| ![0x9, 0xa].contains(code));
        let bidi = [0x61c, 0x200e, 0x200f].into_iter().chain(0x202a..=0x202e).chain(0x2066..=0x2069);
        for code in controls.chain(bidi) {
            let c = char::from_u32(code).expect("a character");
            assert_eq!(printable(&format!("a{c}b")), format!("a\\u{code:04x}b"));
        }
    }

    #[test]
    fn ordinary_text_and_line_ends_stay() {
        for text in ["", "10 Gb/s ± 3 µs → ok\n\ta", "a,b\r\nc,d\r\n", "naïve 日本 \u{1f600}"] {
            assert_eq!(printable(text), text);
        }
        assert_eq!(printable("a,b\r\nc\u{1b}\r\n"), "a,b\r\nc\\u001b\r\n");
        assert_eq!(printable("over\rwritten\r"), "over\\u000dwritten\\u000d");
    }

    #[test]
    fn bytes_that_are_not_text_are_escaped() {
        assert_eq!(&*printable_bytes(b"a\xffb\xc2"), b"a\\xffb\\xc2");
        assert_eq!(&*printable_bytes(b"\x9b31m"), b"\\x9b31m");
    }
}
