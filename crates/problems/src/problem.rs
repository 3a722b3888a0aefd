//! A mistake in a text: file, line, key, suggestion, and the line itself.

use std::fmt;
use std::ops::Range;

/// Longest message, hint or quoted line that is shown, characters.
const MAX_SHOWN: usize = 400;
/// Longest part of a line that is quoted, characters.
const MAX_QUOTED: usize = 110;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it says so; `None` where no text is to blame.
    pub place: Option<TextPosition>,
    /// Dotted path of the key, positions counted from 0 (`link.0.rate`); empty for the file as a whole.
    pub key: String,
    /// What is wrong, in words, without the key.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// A place in a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// Line, counted from 1.
    pub line: usize,
    /// Column, counted from 1, in characters.
    pub column: usize,
    /// Characters of the line that are meant.
    pub width: usize,
    /// The line, made safe for a terminal.
    pub text: String,
}

/// Everything that is wrong with a file: never empty, in the order of the lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The name of the file, for the messages.
    pub file: String,
    /// The problems.
    pub list: Vec<Problem>,
}

impl Problem {
    /// A mistake at `key` without a place.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: None, key: safe(&key.into()), message: safe(&message.into()), hint: None }
    }

    /// With what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(safe(&hint.into()));
        self
    }

    /// With what to do about it, if anything is known.
    #[must_use]
    pub fn maybe_hint(self, hint: Option<String>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// Placed at the bytes `span` of `text`.
    #[must_use]
    pub fn at(mut self, text: &str, span: Range<usize>) -> Self {
        self.place = Some(TextPosition::new(text, span));
        self
    }
}

impl TextPosition {
    /// The place of the bytes `span` of `text`; of their first line if they go over several.
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
        // A long line is cut to the part around the place.
        let cut = if column + width > MAX_QUOTED { column.saturating_sub(MAX_QUOTED / 4) } else { 0 };
        let quoted = text[line_start..line_end].trim_end().chars().skip(cut).take(MAX_QUOTED);
        Self {
            line: text[..start].matches('\n').count() + 1,
            column: column + 1,
            width,
            text: quoted.map(|c| if c.is_control() { ' ' } else { c }).collect(),
        }
        .shifted(cut)
    }

    /// Keeps the caret under its text when the quoted line does not begin at the line's beginning: `width` never goes
    /// past what is quoted, and the quote says that it was cut.
    fn shifted(mut self, cut: usize) -> Self {
        if cut > 0 {
            self.text.insert(0, '…');
        }
        self.width = self.width.min(MAX_QUOTED);
        self
    }

    /// Characters of the quoted text before the place.
    fn indent(&self) -> usize {
        if self.text.starts_with('…') { MAX_QUOTED / 4 + 1 } else { self.column - 1 }
    }
}

impl Problems {
    /// Sorts them by line. `file` is what messages begin with; see [`Problems::named`].
    pub fn new(file: impl Into<String>, mut list: Vec<Problem>) -> Self {
        list.sort_by_key(order);
        list.dedup();
        Self { file: file.into(), list }
    }

    /// The same, of the file `name`.
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

/// `text` on one line, without control characters, cut where it would flood a terminal.
fn safe(text: &str) -> String {
    let mut out: String = text.chars().take(MAX_SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        out.push('…');
    }
    out
}

/// "did you mean `x`?" for what among `known` is near to `word`.
pub fn near<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    closest(word, known).map(|k| format!("did you mean `{k}`?"))
}

/// "did you mean `x`?", or else what there is.
pub fn near_or_list<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    near(word, known.clone()).or_else(|| {
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
