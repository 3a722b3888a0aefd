//! Translation of queries to SQL.

use landspeed_sys::clock;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::query::{Condition, Query};
use crate::rows::{self, Row};
use crate::sets::SetReader;

/// Whether settings and host facts of records are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Without settings and facts, for tables.
    Figures,
    /// With settings and facts.
    Everything,
}

/// SQL conditions with their values.
#[derive(Default)]
struct SqlConditions {
    clauses: Vec<String>,
    values: Vec<Value>,
}

impl SqlConditions {
    fn of(query: &Query) -> Self {
        let mut clauses = Self::default();
        if !query.includes_summaries() {
            clauses.clauses.push("r.summary = 0".to_owned());
        }
        // A record has only one kind, verdict and status, so several of these conditions are alternatives.
        let mut kinds = Vec::new();
        let mut verdicts = Vec::new();
        let mut statuses = Vec::new();
        for condition in query.conditions() {
            match condition {
                Condition::Kind(kind) => kinds.push(kind.clone()),
                Condition::Verdict(verdict) => verdicts.push(verdict.clone()),
                Condition::Status(status) => statuses.push(status.clone()),
                other => clauses.add(other),
            }
        }
        for (column, words) in [("d.kind", kinds), ("r.cause", verdicts), ("r.status", statuses)] {
            if !words.is_empty() {
                let places = vec!["?"; words.len()].join(", ");
                clauses.clauses.push(format!("{column} IN ({places})"));
                clauses.values.extend(words.into_iter().map(Value::Text));
            }
        }
        clauses
    }

    fn push(&mut self, clause: impl Into<String>, values: impl IntoIterator<Item = Value>) {
        self.clauses.push(clause.into());
        self.values.extend(values);
    }

    fn add(&mut self, condition: &Condition) {
        let text = |text: &str| Value::Text(text.to_owned());
        match condition {
            Condition::Id(prefix) => {
                // `g` follows all hex digits.
                self.push("d.id >= ? AND d.id < ?", [text(prefix), text(&format!("{prefix}g"))]);
            }
            Condition::Host(host) => {
                let clause = format!("({} OR {})", matching("r.client", host), matching("r.server", host));
                self.push(clause, [text(host), text(host)]);
            }
            Condition::Target(target) => {
                // Match with or without the port.
                let clause = format!("({} OR r.target GLOB ? || ':[0-9]*')", matching("r.target", target));
                self.push(clause, [text(target), text(target)]);
            }
            Condition::Kernel(kernel) => {
                let clause = format!("({} OR r.kernel GLOB ? || '[-.+]*')", matching("r.kernel", kernel));
                self.push(clause, [text(kernel), text(kernel)]);
            }
            Condition::Setting(name, value) => self.setting(name, value),
            Condition::Tag(tag) => {
                let clause = format!("r.document IN (SELECT document FROM tags WHERE {})", matching("tag", tag));
                self.push(clause, [text(tag)]);
            }
            Condition::Title(title) => self.push(matching("r.title", title), [text(title)]),
            Condition::Flow(flow) => self.push(matching("r.flow", flow), [text(flow)]),
            Condition::Tool(tool) => {
                let clause = format!("({} OR r.tool GLOB ? || ' *')", matching("r.tool", tool));
                self.push(clause, [text(tool), text(tool)]);
            }
            Condition::Since(ns) => self.push("r.started >= ?", [Value::Integer(*ns)]),
            Condition::Until(ns) => self.push("r.started < ?", [Value::Integer(*ns)]),
            Condition::Last(span) => {
                let since_ns = clock::realtime_ns().saturating_sub(span.get());
                self.push("r.started >= ?", [Value::Integer(since_ns as i64)]);
            }
            Condition::Figure(metric, operator, value) => {
                self.push(format!("r.{} {} ?", metric.field(), operator.symbol()), [Value::Real(*value)]);
            }
            Condition::Kind(_) | Condition::Verdict(_) | Condition::Status(_) => {}
        }
    }

    /// Adds a condition on a setting, or on a host fact; for a fact, the host (`client.`) and `sysctl.` may be
    /// omitted in the name.
    fn setting(&mut self, name: &str, value: &str) {
        let mut names = vec![name.to_owned()];
        for prefix in ["client", "server", "lab", "client.sysctl", "server.sysctl"] {
            names.push(format!("{prefix}.{name}"));
        }
        let places = vec!["?"; names.len()].join(", ");
        // sysctl separates the numbers of a triple with tabs.
        let tabbed = value.split_whitespace().collect::<Vec<_>>().join("\t");
        let is = if is_pattern(value) { "value GLOB ?".to_owned() } else { "value IN (?, ?)".to_owned() };
        let sets = format!("SELECT set_seq FROM set_values WHERE key IN ({places}) AND {is}");
        // `+` prevents SQLite from collecting and sorting all rows of the sets; it then searches in the order of time.
        let clause = format!("(+r.settings IN ({sets}) OR +r.facts IN ({sets}))");
        for _ in 0..2 {
            self.values.extend(names.iter().cloned().map(Value::Text));
            self.values.push(Value::Text(value.to_owned()));
            if !is_pattern(value) {
                self.values.push(Value::Text(tabbed.clone()));
            }
        }
        self.clauses.push(clause);
    }

    fn sql(&self) -> String {
        if self.clauses.is_empty() { String::new() } else { format!(" WHERE {}", self.clauses.join(" AND ")) }
    }
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// `COLUMN = ?`, or `COLUMN GLOB ?` for a pattern with `*` or `?`.
fn matching(column: &str, text: &str) -> String {
    let operator = if is_pattern(text) { "GLOB" } else { "=" };
    format!("{column} {operator} ?")
}

const FROM: &str = " FROM records r JOIN documents d ON d.seq = r.document";

/// Returns the matching records, newest first, at most `limit`.
pub fn find(
    connection: &Connection,
    query: &Query,
    limit: Option<u64>,
    detail: Detail,
) -> rusqlite::Result<Vec<Row>> {
    let clauses = SqlConditions::of(query);
    let limit = limit.map_or_else(String::new, |limit| format!(" LIMIT {limit}"));
    let sql =
        format!("SELECT {}{FROM}{} ORDER BY r.started DESC, r.seq DESC{limit}", rows::selected(), clauses.sql());
    let mut statement = connection.prepare(&sql)?;
    let found = statement.query_map(params_from_iter(&clauses.values), rows::read)?;
    let found: Vec<_> = found.collect::<Result<_, _>>()?;
    let mut sets = SetReader::default();
    let complete = |(mut row, settings, facts): (Row, Option<i64>, Option<i64>)| {
        if detail == Detail::Everything {
            row.record.settings = sets.get(connection, settings)?;
            row.record.hosts = sets.get(connection, facts)?;
        }
        Ok(row)
    };
    found.into_iter().map(complete).collect()
}

/// Returns the number of matching records.
pub fn count(connection: &Connection, query: &Query) -> rusqlite::Result<u64> {
    let clauses = SqlConditions::of(query);
    // Join documents only if a condition needs them.
    let from = if clauses.sql().contains("d.") { FROM } else { " FROM records r" };
    let sql = format!("SELECT count(*){from}{}", clauses.sql());
    let count: i64 = connection.prepare(&sql)?.query_row(params_from_iter(&clauses.values), |row| row.get(0))?;
    Ok(count as u64)
}

/// Returns the documents with a matching record, newest first, at most `limit`.
pub fn documents(
    connection: &Connection,
    query: &Query,
    limit: Option<u64>,
) -> rusqlite::Result<Vec<rows::ListedDocument>> {
    let clauses = SqlConditions::of(query);
    // Without conditions, sets and experiments are listed like other documents.
    let which = if query.is_all() {
        String::new()
    } else {
        format!(" WHERE d.seq IN (SELECT r.document{FROM}{})", clauses.sql())
    };
    let limit = limit.map_or_else(String::new, |limit| format!(" LIMIT {limit}"));
    let order = "ORDER BY coalesce(d.started, d.stored) DESC, d.seq DESC";
    let sql = format!("SELECT {} FROM documents d{which} {order}{limit}", rows::DOCUMENT);
    let mut statement = connection.prepare(&sql)?;
    let values: &[Value] = if query.is_all() { &[] } else { &clauses.values };
    statement.query_map(params_from_iter(values), rows::read_document)?.collect()
}
