//! An error in a text: file, line, key, hint, and the line itself.

use std::fmt;
use std::ops::Range;

/// Maximum length of a message or hint, characters.
const MAX_SHOWN: usize = 400;
/// Maximum length of the quoted part of a line, characters.
const MAX_QUOTED: usize = 110;

/// One error in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Position in the text; `None` if no part of the text is the cause.
    pub place: Option<TextPosition>,
    /// Dotted path of the key, with array indices from 0 (`link.0.rate`); empty for the file as a whole.
    pub key: String,
    /// Cause, without the key.
    pub message: String,
    /// Advice on how to fix it.
    pub hint: Option<String>,
}

/// A position in a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// Line, counted from 1.
    pub line: usize,
    /// Column, counted from 1, in characters.
    pub column: usize,
    /// Number of characters of the line that are marked.
    pub width: usize,
    /// The line, without control characters.
    pub text: String,
}

/// All errors of a file, by line; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// File name in the messages.
    pub file: String,
    /// The errors, by line.
    pub list: Vec<Problem>,
}

impl Problem {
    /// Creates an error at `key`, without a position.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: None, key: sanitized(&key.into()), message: sanitized(&message.into()), hint: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(sanitized(&hint.into()));
        self
    }

    /// Adds a hint, if there is one.
    #[must_use]
    pub fn maybe_hint(self, hint: Option<String>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// Sets the position to the bytes `span` of `text`.
    #[must_use]
    pub fn at(mut self, text: &str, span: Range<usize>) -> Self {
        self.place = Some(TextPosition::new(text, span));
        self
    }
}

impl TextPosition {
    /// Returns the position of the bytes `span` of `text`, limited to the first line.
    pub fn new(text: &str, span: Range<usize>) -> Self {
        let floor = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (start, end) = (floor(span.start), floor(span.end.max(span.start)));
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let column = text[line_start..start].chars().count();
        let width = text[start..end.min(line_end).max(start)].trim_end().chars().count().max(1);
        // A long line is cut to the part around the position.
        let cut = if column + width > MAX_QUOTED { column.saturating_sub(MAX_QUOTED / 4) } else { 0 };
        let quoted = text[line_start..line_end].trim_end().chars().skip(cut).take(MAX_QUOTED);
        Self {
            line: text[..start].matches('\n').count() + 1,
            column: column + 1,
            width,
            text: quoted.map(|c| if c.is_control() { ' ' } else { c }).collect(),
        }
        .shift_left(cut)
    }

    /// Keeps the caret aligned if the beginning of the line was cut off: limits `width` to the quoted part, and
    /// marks the cut with an ellipsis.
    fn shift_left(mut self, cut: usize) -> Self {
        if cut > 0 {
            self.text.insert(0, '…');
        }
        self.width = self.width.min(MAX_QUOTED);
        self
    }

    /// Returns the number of quoted characters before the position.
    fn indent(&self) -> usize {
        if self.text.starts_with('…') { MAX_QUOTED / 4 + 1 } else { self.column - 1 }
    }
}

impl Problems {
    /// Sorts the errors by line. Messages begin with `file`; see [`Problems::named`].
    pub fn new(file: impl Into<String>, mut list: Vec<Problem>) -> Self {
        list.sort_by_key(order);
        list.dedup();
        Self { file: file.into(), list }
    }

    /// Replaces the file name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.file = name.into();
        self
    }
}

fn order(problem: &Problem) -> (usize, usize) {
    problem.place.as_ref().map_or((usize::MAX, 0), |place| (place.line, place.column))
}

impl std::error::Error for Problems {}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.list.iter().enumerate() {
            if i > 0 {
                f.write_str("\n\n")?;
            }
            f.write_str(&self.file)?;
            if let Some(place) = &problem.place {
                write!(f, ":{}:{}", place.line, place.column)?;
            }
            f.write_str(": ")?;
            if !problem.key.is_empty() {
                write!(f, "{}: ", problem.key)?;
            }
            f.write_str(&problem.message)?;
            if let Some(place) = &problem.place {
                let margin = place.line.to_string();
                let blank = " ".repeat(margin.len());
                write!(f, "\n {margin} | {}", place.text)?;
                write!(f, "\n {blank} | {}{}", " ".repeat(place.indent()), "^".repeat(place.width))?;
            }
            if let Some(hint) = &problem.hint {
                write!(f, "\n   {hint}")?;
            }
        }
        Ok(())
    }
}

/// Returns `text` without control characters, cut to [`MAX_SHOWN`] characters.
fn sanitized(text: &str) -> String {
    let mut out: String = text.chars().take(MAX_SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        out.push('…');
    }
    out
}

/// Returns "did you mean `x`?" with the name among `known` that is most similar to `word`.
pub fn suggest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    closest(word, known).map(|k| format!("did you mean `{k}`?"))
}

/// Returns "did you mean `x`?", or else a list of `known`.
pub fn suggest_or_list<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    suggest(word, known.clone()).or_else(|| {
        let all: Vec<&str> = known.into_iter().collect();
        (!all.is_empty()).then(|| format!("use one of: {}", all.join(", ")))
    })
}

fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let flat = |text: &str| text.to_lowercase().replace(['-', '_'], "");
    let short: String = word.chars().take(64).collect();
    known
        .into_iter()
        .map(|k| (strsim::jaro_winkler(&flat(&short), &flat(k)), k))
        .filter(|(score, _)| *score >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, k)| k)
}
