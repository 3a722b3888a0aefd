//! `vary`: keys by their dotted paths, and the values they take.

use landspeed_problems::{Document, Problem, renamed, suggest_or_list};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::Vary;

/// One varied key of a document.
pub(super) struct Axis<'i> {
    /// Name in tables.
    pub label: String,
    /// Steps of its path.
    path: Vec<String>,
    /// The path as written, with its position.
    key: Spanned<DeString<'i>>,
    /// The values as written, with their positions.
    pub values: Vec<Spanned<DeValue<'i>>>,
    /// The values as JSON, for documents.
    pub json: Vec<serde_json::Value>,
}

/// Returns the axes of a document, in its order. `vary` is the parsed value of this key.
pub(super) fn axes<'i>(text: &str, document: &Document<'i>, vary: &[Vary]) -> Result<Vec<Axis<'i>>, Vec<Problem>> {
    let written = document.get_ref().get("vary").and_then(|v| v.get_ref().as_array());
    let mut axes: Vec<Axis> = Vec::new();
    let mut problems = Vec::new();
    for (i, (vary, table)) in vary.iter().zip(written.into_iter().flat_map(|a| a.iter())).enumerate() {
        let Some((key, values)) = written_parts(table) else { continue };
        let span = key.span();
        let at =
            |name: &str, message: String| Problem::new(format!("vary.{i}.{name}"), message).at(text, span.clone());
        let axis = Axis {
            label: vary.label.clone().unwrap_or_else(|| vary.key.clone()),
            path: steps(&vary.key),
            json: vary.values.iter().map(|v| serde_json::to_value(v).unwrap_or_default()).collect(),
            key,
            values,
        };
        if axis.values.is_empty() {
            problems.push(at("values", "the list is empty, so there is no cell to run".to_owned()));
        } else if let Some(reason) = refusal_reason(&axis.path) {
            problems.push(at("key", format!("`{}` cannot be varied", vary.key)).hint(reason));
        } else if axes.iter().any(|other| other.path == axis.path || other.label == axis.label) {
            problems.push(
                at("key", format!("`{}` is varied twice", axis.label))
                    .hint("name each key once, or use different labels"),
            );
        }
        axes.push(axis);
    }
    if problems.is_empty() { Ok(axes) } else { Err(problems) }
}

fn written_parts<'i>(table: &Spanned<DeValue<'i>>) -> Option<(Spanned<DeString<'i>>, Vec<Spanned<DeValue<'i>>>)> {
    let table = table.get_ref().as_table()?;
    let key = table.get("key")?;
    let DeValue::String(name) = key.get_ref() else { return None };
    let values = table.get("values")?.get_ref().as_array()?.to_vec();
    Some((Spanned::new(key.span(), name.clone()), values))
}

fn refusal_reason(path: &[String]) -> Option<&'static str> {
    Some(match path.first().map(String::as_str) {
        Some("seed" | "repeats") => "use `repeats = 15`: its runs have seed, seed + 1, …",
        Some("name" | "description" | "reference") => "vary a key that changes the run",
        Some("vary") => "vary a key of a host, switch, link or flow",
        None | Some("") => "use the dotted path of a key, such as switch.west.queue.limit",
        _ => return None,
    })
}

/// Splits a path into steps: `a.b."c.d"` → a, b, c.d.
pub(super) fn steps(path: &str) -> Vec<String> {
    let mut steps = vec![String::new()];
    let mut quoted = false;
    for c in path.trim().chars() {
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => steps.push(String::new()),
            c => steps.last_mut().expect("begins with one").push(c),
        }
    }
    steps
}

impl<'i> Axis<'i> {
    /// Sets the key to its value number `index` in `document`.
    pub(super) fn set(&self, text: &str, document: &mut Document<'i>, index: usize) -> Result<(), Problem> {
        let mut walk = KeyWalk { axis: self, value: &self.values[index], walked: Vec::new() };
        walk.table(document.get_mut(), &self.path).map_err(|problem| problem.at(text, self.key.span()))
    }
}

struct KeyWalk<'a, 'i> {
    axis: &'a Axis<'i>,
    value: &'a Spanned<DeValue<'i>>,
    walked: Vec<String>,
}

impl<'i> KeyWalk<'_, 'i> {
    fn table(&mut self, table: &mut DeTable<'i>, path: &[String]) -> Result<(), Problem> {
        let [step, rest @ ..] = path else { return Ok(()) };
        if step == "*" {
            let names: Vec<String> = table.keys().map(|k| k.get_ref().to_string()).collect();
            if names.is_empty() {
                return Err(self.unknown_key(step, &[]));
            }
            return names.iter().try_for_each(|name| self.enter(table, name, rest));
        }
        if self.walked.last().is_some_and(|last| last == "sysctl") {
            return self.enter(table, &path.join("."), &[]);
        }
        let named = matches!(self.walked.as_slice(), [one] if one == "host" || one == "switch");
        if !table.contains_key(step.as_str()) && (named || !rest.is_empty()) {
            let Some(default_table) = self.default_table(step).filter(|_| !named) else {
                let mut known: Vec<String> = table.keys().map(|k| k.get_ref().to_string()).collect();
                known.retain(|k| k != "vary");
                return Err(self.unknown_key(step, &known));
            };
            table.insert(self.key(step), Spanned::new(self.axis.key.span(), DeValue::Table(default_table)));
        }
        self.enter(table, step, rest)
    }

    /// Returns a table for one that is absent: with the kind that is the default of the file format, if it has one.
    fn default_table(&self, step: &str) -> Option<DeTable<'i>> {
        let mut table = DeTable::new();
        let kind = match step {
            "hosts" | "sysctl" | "forward" | "reverse" | "port" | "jitter" | "loss" => return Some(table),
            "queue" => "bfifo",
            "qdisc" => "fq",
            _ => return None,
        };
        let kind = Spanned::new(self.axis.key.span(), DeValue::String(kind.into()));
        table.insert(self.key("kind"), kind);
        Some(table)
    }

    fn key(&self, step: &str) -> Spanned<DeString<'i>> {
        Spanned::new(self.axis.key.span(), step.to_owned().into())
    }

    fn enter(&mut self, table: &mut DeTable<'i>, step: &str, rest: &[String]) -> Result<(), Problem> {
        if rest.is_empty() {
            table.remove(step);
            table.insert(self.key(step), self.value.clone());
            return Ok(());
        }
        self.walked.push(step.to_owned());
        if let Some(descend) = table.get_mut(step) {
            self.descend(descend, rest)?;
        }
        self.walked.pop();
        Ok(())
    }

    fn descend(&mut self, value: &mut Spanned<DeValue<'i>>, path: &[String]) -> Result<(), Problem> {
        let span = value.span();
        let is_queue = self.walked.last().is_some_and(|w| w == "queue" || w == "qdisc")
            || self.walked.iter().any(|w| w == "port");
        if let (true, DeValue::String(_)) = (is_queue, value.get_ref()) {
            // `queue = "red"` is short for `queue = { kind = "red" }`.
            let mut table = DeTable::new();
            table.insert(self.key("kind"), value.clone());
            *value = Spanned::new(span, DeValue::Table(table));
        }
        match value.get_mut() {
            DeValue::Table(table) => self.table(table, path),
            DeValue::Array(array) => self.array(array, path),
            _ => Err(Problem::new(
                self.axis.key.get_ref().as_ref(),
                format!("no such key: `{}` is a value", self.walked.join(".")),
            )),
        }
    }

    fn array(&mut self, array: &mut [Spanned<DeValue<'i>>], path: &[String]) -> Result<(), Problem> {
        let [step, rest @ ..] = path else { return Ok(()) };
        let positions: Vec<usize> = match step.parse::<usize>() {
            _ if step == "*" => (0..array.len()).collect(),
            Ok(position) => vec![position],
            Err(_) => array.iter().enumerate().filter(|(_, item)| is_named(item, step)).map(|(i, _)| i).collect(),
        };
        if positions.is_empty() || positions.iter().any(|p| *p >= array.len()) {
            let known: Vec<String> = (0..array.len()).map(|i| i.to_string()).collect();
            return Err(self.unknown_key(step, &known));
        }
        for position in positions {
            if rest.is_empty() {
                array[position] = self.value.clone();
                continue;
            }
            self.walked.push(position.to_string());
            self.descend(&mut array[position], rest)?;
            self.walked.pop();
        }
        Ok(())
    }

    fn unknown_key(&self, step: &str, known: &[String]) -> Problem {
        let place =
            if self.walked.is_empty() { "the scenario".to_owned() } else { format!("`{}`", self.walked.join(".")) };
        let message = match (step, known) {
            ("*", _) | (_, []) => format!("no such key: {place} is empty"),
            _ => format!("no such key: {place} has no `{step}`"),
        };
        let hint = if step == "*" {
            None
        } else {
            renamed(step).or_else(|| suggest_or_list(step, known.iter().map(String::as_str)))
        };
        Problem::new(self.axis.key.get_ref().as_ref(), message).maybe_hint(hint)
    }
}

fn is_named(item: &Spanned<DeValue>, name: &str) -> bool {
    item.get_ref().as_table().and_then(|t| t.get("name")).and_then(|n| n.get_ref().as_str()) == Some(name)
}
