//! `landspeed archive list` and `find`.

use landspeed_archive::{Query, Row};
use landspeed_model::{ARCHIVE_LIST_SCHEMA, ArchiveListDocument, ArchivedRecord};

use super::{advised, build, filter::Filter, open, text};
use crate::CommandOutcome;
use crate::output::Sink;

/// Default number of rows in a table.
const DEFAULT_ROWS: u64 = 50;

/// Options of `archive list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Documents to show, the newest; 0 for all
    #[arg(short = 'n', long, default_value_t = DEFAULT_ROWS, value_name = "N")]
    limit: u64,
    #[command(flatten)]
    filter: Filter,
}

/// Options of `archive find`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  landspeed archive find --host 'dtn*' --verdict receiver-window
  landspeed archive find --setting net.ipv4.tcp_congestion_control=bbr --since 2026-01-01
  landspeed archive find host=dtn1,last=30d,'goodput<5G'
  landspeed archive find --tag before --ids          for other commands
  landspeed archive find --kind lab --json - | jq '.records[].figures.goodput_bps'")]
pub struct FindArgs {
    #[command(flatten)]
    filter: Filter,
    /// Records to show, the newest; 0 for all [default: 50, or all with --ids and --json]
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u64>,
    /// Print only the ids of documents, one a line
    #[arg(long)]
    ids: bool,
    /// Write the records as JSON (- for standard output)
    #[arg(short = 'J', long, value_name = "FILE")]
    json: Option<Sink>,
}

pub fn list(args: &ListArgs) -> anyhow::Result<CommandOutcome> {
    let query = args.filter.query()?;
    let archive = open()?;
    let limit = (args.limit > 0).then_some(args.limit);
    let documents = archive.documents(&query, limit).map_err(advised)?;
    let total = if query.is_all() {
        archive.count_documents().map_err(advised)?
    } else if limit.is_some_and(|limit| documents.len() as u64 == limit) {
        archive.documents(&query, None).map_err(advised)?.len() as u64
    } else {
        documents.len() as u64
    };
    out!("{}", text::documents(&documents, total, archive.directory()));
    Ok(CommandOutcome::Clean)
}

pub fn find(args: &FindArgs) -> anyhow::Result<CommandOutcome> {
    if let Some(sink) = &args.json {
        sink.check()?;
    }
    let query = args.filter.query()?;
    let archive = open()?;
    let prints = !args.ids && args.json.is_none();
    let limit = args.limit.unwrap_or(if prints { DEFAULT_ROWS } else { 0 });
    let rows = match limit {
        0 => archive.find(&query),
        limit => archive.find_newest(&query, limit),
    }
    .map_err(advised)?;
    let total = if limit > 0 && rows.len() as u64 == limit {
        archive.count(&query).map_err(advised)?
    } else {
        rows.len() as u64
    };
    if let Some(sink) = &args.json {
        let mut json = serde_json::to_vec_pretty(&document(&query, total, rows.iter()))?;
        json.push(b'\n');
        sink.write(&json)?;
    }
    if args.ids {
        let mut last = None;
        for row in &rows {
            if last.replace(&row.id) != Some(&row.id) {
                outln!("{}", row.id);
            }
        }
    } else if prints {
        out!("{}", text::records(&rows, total, &query));
    }
    Ok(CommandOutcome::Clean)
}

fn document<'a>(query: &Query, total: u64, rows: impl Iterator<Item = &'a Row>) -> ArchiveListDocument {
    ArchiveListDocument {
        schema: ARCHIVE_LIST_SCHEMA.to_owned(),
        landspeed: build(),
        query: query.to_string(),
        total,
        records: rows.map(record).collect(),
    }
}

fn record(row: &Row) -> ArchivedRecord {
    let record = &row.record;
    ArchivedRecord {
        id: row.id.to_string(),
        kind: row.kind.clone(),
        started: record.started.clone(),
        title: record.title.clone(),
        flow: record.flow.clone(),
        target: record.target.clone(),
        client: row.client.clone(),
        server: row.server.clone(),
        kernel: record.kernel.clone(),
        cause: record.cause.clone(),
        confidence: record.confidence,
        status: record.status.word().to_owned(),
        tool: record.tool.clone(),
        seed: record.seed,
        digest: record.digest.clone(),
        figures: record.figures.fields(),
        tags: row.tags.clone(),
    }
}
