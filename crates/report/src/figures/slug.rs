//! Identifiers made from titles.

/// Returns the letters, digits and hyphens of a text, at most 60.
pub(crate) fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() => out.push(c.to_ascii_lowercase()),
            _ if !out.ends_with('-') && !out.is_empty() => out.push('-'),
            _ => {}
        }
        if out.len() >= 60 {
            break;
        }
    }
    let out = out.trim_matches('-');
    if out.is_empty() { "figure".to_owned() } else { out.to_owned() }
}
