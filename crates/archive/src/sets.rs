//! Settings and host facts, each distinct set stored once.
//!
//! A host has about a hundred facts, which are the same in most records: stored per record, they would be most
//! of the index.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, OptionalExtension as _, params};
use sha2::{Digest as _, Sha256};

/// Returns the number of a set of names and values, adding it if it is new. `None` for an empty set.
pub fn number(connection: &Connection, values: &BTreeMap<String, String>) -> rusqlite::Result<Option<i64>> {
    if values.is_empty() {
        return Ok(None);
    }
    let mut hash = Sha256::new();
    for (key, value) in values {
        for text in [key, value] {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
    }
    let hash = hash.finalize();
    let known = connection
        .prepare_cached("SELECT seq FROM sets WHERE hash = ?1")?
        .query_row([&hash[..]], |row| row.get(0))
        .optional()?;
    if let Some(seq) = known {
        return Ok(Some(seq));
    }
    connection.prepare_cached("INSERT INTO sets (hash) VALUES (?1)")?.execute([&hash[..]])?;
    let seq = connection.last_insert_rowid();
    let mut insert = connection.prepare_cached("INSERT INTO set_values (set_seq, key, value) VALUES (?1, ?2, ?3)")?;
    for (key, value) in values {
        insert.execute(params![seq, key, value])?;
    }
    Ok(Some(seq))
}

/// Reader of sets, with a cache.
#[derive(Default)]
pub struct SetReader {
    known: HashMap<i64, BTreeMap<String, String>>,
}

impl SetReader {
    /// Returns the names and values of a set.
    pub fn get(&mut self, connection: &Connection, seq: Option<i64>) -> rusqlite::Result<BTreeMap<String, String>> {
        let Some(seq) = seq else { return Ok(BTreeMap::new()) };
        if let Some(values) = self.known.get(&seq) {
            return Ok(values.clone());
        }
        let mut select = connection.prepare_cached("SELECT key, value FROM set_values WHERE set_seq = ?1")?;
        let values: BTreeMap<String, String> =
            select.query_map([seq], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        self.known.insert(seq, values.clone());
        Ok(values)
    }
}
