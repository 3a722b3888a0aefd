//! `landspeed archive tag`.

use std::collections::BTreeSet;

use anyhow::{bail, ensure};
use landspeed_archive::{Archive, TagChange};

use super::{advised, directory};
use crate::CommandOutcome;

/// Options of `archive tag`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  landspeed archive tag 4be1c0 +before-upgrade
  landspeed archive tag 4be1c0 9d02aa +before -draft
  landspeed archive tag 4be1c0 9d02aa --add nightly")]
pub struct Args {
    /// Ids of documents, or their beginnings; +TAG adds a tag, -TAG removes one
    #[arg(required = true, value_name = "ID|+TAG|-TAG", allow_hyphen_values = true)]
    words: Vec<String>,
    /// Add a tag
    #[arg(long, value_name = "TAG")]
    add: Vec<String>,
    /// Remove a tag
    #[arg(long, value_name = "TAG")]
    remove: Vec<String>,
}

pub fn main(args: &Args) -> anyhow::Result<CommandOutcome> {
    let mut change =
        TagChange { add: args.add.iter().cloned().collect(), remove: args.remove.iter().cloned().collect() };
    let mut ids = Vec::new();
    let mut words = args.words.iter();
    while let Some(word) = words.next() {
        // clap passes options that follow the first positional argument unparsed.
        let mut value = |name: &str| match words.next() {
            Some(value) => Ok(value.clone()),
            None => bail!("{name} needs a tag"),
        };
        if word == "--add" {
            change.add.insert(value("--add")?);
        } else if word == "--remove" {
            change.remove.insert(value("--remove")?);
        } else if let Some(tag) = word.strip_prefix('+') {
            change.add.insert(tag.to_owned());
        } else if let Some(tag) = word.strip_prefix('-') {
            change.remove.insert(tag.to_owned());
        } else {
            ids.push(word);
        }
    }
    change.add.iter().chain(&change.remove).try_for_each(|tag| check(tag))?;
    ensure!(!ids.is_empty(), "no document is named\nGive an id of `landspeed archive list`.");
    ensure!(change != TagChange::default(), "no tag is named\nAdd one with +TAG, or remove one with -TAG.");
    if let Some(both) = change.add.intersection(&change.remove).next() {
        bail!("the tag `{both}` is both added and removed\nName it once.");
    }
    let mut archive = Archive::open(&directory()?).map_err(advised)?;
    let found: Vec<_> = ids.iter().map(|id| archive.resolve(id).map_err(advised)).collect::<Result<_, _>>()?;
    let mut changed = BTreeSet::new();
    for document in found {
        if !changed.insert(document.id.clone()) {
            continue;
        }
        let tags = archive.tag(&document.id, &change).map_err(advised)?;
        let tags: Vec<String> = tags.into_iter().collect();
        outln!("  {}  {}", document.id.short(), if tags.is_empty() { "no tags".to_owned() } else { tags.join(" ") });
    }
    Ok(CommandOutcome::Clean)
}

/// Checks that a tag has no spaces or query characters: tags appear in queries and lists.
fn check(tag: &str) -> anyhow::Result<()> {
    let fits = |c: char| !c.is_whitespace() && !c.is_control() && !",=*?".contains(c);
    ensure!(
        !tag.is_empty() && tag.len() <= 64 && tag.chars().all(fits) && !tag.starts_with(['+', '-']),
        "`{tag}` is not a tag: a tag is a word of at most 64 letters, digits and dashes, such as before-upgrade"
    );
    Ok(())
}
