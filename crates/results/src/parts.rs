//! Splits a file into the documents in it: a log to which several were appended, text before and after a
//! document, UTF-16, a byte order mark.

use std::borrow::Cow;

use serde::Deserialize;

use crate::json::{self, Damage};

/// One document of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<'a> {
    /// Line of the file in which it begins, from 1.
    pub line: usize,
    /// Its bytes, UTF-8; the whole file if it is a single document.
    pub bytes: Cow<'a, [u8]>,
}

/// Text of a file.
struct Text<'a> {
    text: Cow<'a, str>,
    /// Bytes before the text.
    mark: usize,
    utf16: bool,
}

impl Text<'_> {
    /// Converts an offset in the text to one in the file.
    fn byte(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or(&self.text);
        self.mark + if self.utf16 { 2 * before.encode_utf16().count() } else { at }
    }
}

/// Splits a file into JSON documents; a file without JSON is one part. The lines of one iperf3 `--json-stream` are
/// one part. Text around the documents is left out.
///
/// # Errors
/// The bytes are not text, or JSON is damaged; with the byte.
pub fn split(bytes: &[u8]) -> Result<Vec<Part<'_>>, Damage> {
    let text = decode(bytes)?;
    let documents = documents(&text)?;
    let whole = |text: Text<'_>| Part {
        line: 1,
        bytes: if text.utf16 {
            Cow::Owned(text.text.into_owned().into_bytes())
        } else {
            Cow::Borrowed(&bytes[text.mark..])
        },
    };
    match documents.as_slice() {
        [] => Ok(vec![whole(text)]),
        [(start, end)] if text.text[..*start].trim().is_empty() && text.text[*end..].trim().is_empty() => {
            Ok(vec![whole(text)])
        }
        all => {
            let (mut line, mut counted) = (1, 0);
            let parts = all.iter().map(|(start, end)| {
                line += text.text[counted..*start].matches('\n').count();
                counted = *start;
                let bytes = if text.utf16 {
                    Cow::Owned(text.text[*start..*end].as_bytes().to_vec())
                } else {
                    Cow::Borrowed(&bytes[text.mark + start..text.mark + end])
                };
                Part { line, bytes }
            });
            Ok(parts.collect())
        }
    }
}

/// The values of a text: objects and arrays, as ranges of bytes.
pub fn values(text: &str) -> impl Iterator<Item = Result<(usize, usize), usize>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = next_value(text, at)?;
        let Some(end) = json::end_of_value(text, start) else {
            at = text.len();
            return Some(Err(start));
        };
        at = end;
        Some(Ok((start, end)))
    })
}

#[derive(Deserialize)]
struct Event {
    event: String,
}

/// The documents of a text as ranges of bytes. Consecutive events are one document, from `start` to the next.
fn documents(text: &Text<'_>) -> Result<Vec<(usize, usize)>, Damage> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut in_events = false;
    for range in values(&text.text) {
        let (start, end) = range.map_err(|start| Damage {
            at: text.byte(text.text.len()),
            why: format!("the document that begins at byte {} is not complete", text.byte(start)),
        })?;
        let value = &text.text[start..end];
        // A fast check first: most values are correct.
        if serde_json::from_str::<serde::de::IgnoredAny>(value).is_err() {
            json::parse(value).map_err(|why| Damage { at: text.byte(start + why.at), why: why.why })?;
        }
        // An event has its name first or, with sorted keys, last; large documents are not parsed again.
        let bytes = value.as_bytes();
        let ends = [&bytes[..bytes.len().min(40)], &bytes[bytes.len().saturating_sub(40)..]];
        let may_be_event = ends.iter().any(|end| end.windows(7).any(|word| word == b"\"event\""));
        let event = may_be_event.then(|| serde_json::from_str::<Event>(value).ok()).flatten();
        match (&event, found.last_mut()) {
            (Some(Event { event }), Some(last)) if in_events && event != "start" => last.1 = end,
            _ => found.push((start, end)),
        }
        in_events = event.is_some();
    }
    Ok(found)
}

/// The next `{` before a `"` or `}`, or `[` before a `{`: they begin an object, or a list of them.
fn next_value(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let next = |at: usize| bytes[at + 1..].iter().find(|byte| !byte.is_ascii_whitespace());
    (from..bytes.len()).find(|at| match bytes[*at] {
        b'{' => matches!(next(*at), Some(b'"' | b'}')),
        b'[' => next(*at) == Some(&b'{'),
        _ => false,
    })
}

/// Decodes UTF-8 and UTF-16, with a byte order mark or without.
fn decode(bytes: &[u8]) -> Result<Text<'_>, Damage> {
    let (mark, big_endian) = match bytes {
        [0xef, 0xbb, 0xbf, ..] => (3, None),
        [0xff, 0xfe, ..] => (2, Some(false)),
        [0xfe, 0xff, ..] => (2, Some(true)),
        [b'\t'..=b'~', 0, b'\t'..=b'~', 0, ..] => (0, Some(false)),
        [0, b'\t'..=b'~', 0, b'\t'..=b'~', ..] => (0, Some(true)),
        _ => (0, None),
    };
    let rest = &bytes[mark..];
    let Some(big_endian) = big_endian else {
        let text = std::str::from_utf8(rest)
            .map_err(|why| Damage { at: mark + why.valid_up_to(), why: "this is not UTF-8 text".to_owned() })?;
        return Ok(Text { text: Cow::Borrowed(text), mark, utf16: false });
    };
    let damaged = |at: usize| Damage { at: mark + at, why: "this is not UTF-16 text".to_owned() };
    let of_pair = |pair: &[u8]| {
        let pair = [pair[0], pair[1]];
        if big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
    };
    let units = rest.chunks_exact(2);
    if !units.remainder().is_empty() {
        return Err(damaged(rest.len() - 1));
    }
    let mut text = String::with_capacity(rest.len() / 2);
    let mut at = 0;
    for unit in char::decode_utf16(units.map(of_pair)) {
        let c = unit.map_err(|_| damaged(at))?;
        text.push(c);
        at += 2 * c.len_utf16();
    }
    Ok(Text { text: Cow::Owned(text), mark, utf16: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(bytes: &[u8]) -> Vec<(usize, String)> {
        let parts = split(bytes).expect("parts");
        parts.iter().map(|part| (part.line, String::from_utf8(part.bytes.to_vec()).expect("UTF-8"))).collect()
    }

    #[test]
    fn appended_documents_are_separate_parts() {
        let text = "{\"a\": 1}\n{\n \"b\": \"}\"}{\"c\": 3}\nwarning: {x}\n[{\"d\": 4}]\n";
        let found = texts(text.as_bytes());
        let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 2, 3, 5]);
        assert_eq!(found[1].1, "{\n \"b\": \"}\"}");
        assert_eq!(found[3].1, "[{\"d\": 4}]");
    }

    #[test]
    fn text_around_a_document_is_left_out() {
        let found = texts(b"Warning: experimental\n2026-11-26 {\"a\": 1}\niperf3: error - broken pipe\n");
        assert_eq!(found, [(2, "{\"a\": 1}".to_owned())]);
        assert_eq!(texts(b"  plain text\n"), [(1, "  plain text\n".to_owned())]);
    }

    #[test]
    fn utf_16_and_byte_order_marks_are_decoded() {
        let text = "{\"a\": \"\u{1f600}\u{e4}\"}\n";
        let unmarked = |order: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(order).collect::<Vec<u8>>();
        let (little, big) = (unmarked(u16::to_le_bytes), unmarked(u16::to_be_bytes));
        let marked = |mark: &[u8], rest: &[u8]| [mark, rest].concat();
        for bytes in [
            marked(&[0xff, 0xfe], &little),
            marked(&[0xfe, 0xff], &big),
            marked(&[0xef, 0xbb, 0xbf], text.as_bytes()),
            little,
            big,
        ] {
            assert_eq!(texts(&bytes), [(1, text.to_owned())]);
        }
    }

    #[test]
    fn damage_is_reported_with_its_byte() {
        let at = |bytes: &[u8]| match split(bytes) {
            Err(Damage { at, .. }) => at,
            other => panic!("{other:?}"),
        };
        assert_eq!(at(b"{\"a\": 1}\n{\"b\": oops}"), 15);
        assert_eq!(at(b"{\"a\": 1}\n{\"b\": 2"), 16);
        assert_eq!(at(b"{\"a\": \"\xff\"}"), 7);
        assert_eq!(at(&[0xff, 0xfe, b'{', 0, b'"']), 4);
        let utf16: Vec<u8> = "{\"\u{e4}\": oops}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(at(&utf16), 12);
    }

    #[test]
    fn events_of_one_stream_are_one_part() {
        let run = "{\"event\": \"start\", \"data\": {}}\n{\"event\": \"end\", \"data\": {}}\n";
        let found = texts(format!("warning\n{run}{run}").as_bytes());
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(found[0].1, run.trim_end());
    }
}
