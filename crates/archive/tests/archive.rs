//! Guarantees of the archive: documents are returned unchanged, nothing is lost, damage is detected.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use landspeed_archive::{Archive, ArchiveError, Id, Limits, Query, TagChange, csv, openmetrics};
use landspeed_model::Metric;
use landspeed_units::Nanos;
use tempfile::TempDir;

fn fixture(path: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

const RUN: &str = "crates/diagnose/fixtures/real/bulk-loopback-bbr.json";

fn query(text: &str) -> Query {
    text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
}

fn new() -> (TempDir, Archive) {
    let directory = tempfile::tempdir().expect("a directory");
    let archive = Archive::open(&directory.path().join("archive")).unwrap_or_else(|why| panic!("{why}"));
    assert!(archive.is_new());
    (directory, archive)
}

fn keep(archive: &mut Archive, bytes: &[u8]) -> Id {
    archive.insert(bytes).unwrap_or_else(|why| panic!("{why}"))
}

/// An iperf3 document with another time and rate, so that it has another id.
fn iperf3(timesecs: u64, bps: f64) -> Vec<u8> {
    let mut document: serde_json::Value =
        serde_json::from_slice(&fixture("fixtures/iperf3/3.18/tcp.json")).expect("JSON");
    document["start"]["timestamp"]["timesecs"] = timesecs.into();
    document["end"]["sum_received"]["bits_per_second"] = bps.into();
    serde_json::to_vec(&document).expect("JSON")
}

fn file_of(archive: &Archive, id: &Id) -> PathBuf {
    archive.directory().join("documents").join(&id.as_str()[..2]).join(format!("{id}.json.gz"))
}

#[test]
fn documents_are_returned_byte_for_byte() {
    let (_directory, mut archive) = new();
    let bytes = fixture(RUN);
    let id = keep(&mut archive, &bytes);
    assert_eq!(id, Id::of(&bytes));
    assert_eq!(archive.document(&id).expect("it is there"), bytes);
    assert_eq!(keep(&mut archive, &bytes), id, "the same document is stored once");
    assert_eq!(archive.count_documents().expect("an index"), 1);
    assert_eq!(archive.resolve(&id.as_str()[..6]).expect("unique").id, id);
    assert!(matches!(archive.resolve("0000000"), Err(ArchiveError::Unknown { .. })));
}

#[test]
fn records_round_trip_through_the_index() {
    let (_directory, mut archive) = new();
    for path in [RUN, "fixtures/reports/lab.json", "fixtures/iperf3/3.22/udp.json"] {
        let bytes = fixture(path);
        let id = keep(&mut archive, &bytes);
        let reading = landspeed_archive::Reading::of(&bytes).expect("a result");
        let found = archive.records(&query(&format!("id={id}"))).expect("an index");
        let mut found: Vec<_> = found.into_iter().map(|(_, record)| record).collect();
        found.reverse();
        assert_eq!(found, reading.records, "{path}");
    }
}

#[test]
fn conditions_select_records() {
    let (_directory, mut archive) = new();
    let run = keep(&mut archive, &fixture(RUN));
    let lab = keep(&mut archive, &fixture("fixtures/reports/lab.json"));
    let slow = keep(&mut archive, &iperf3(1_700_000_000, 1e9));
    let fast = keep(&mut archive, &iperf3(1_800_000_000, 9e9));
    keep(&mut archive, &fixture("fixtures/reports/labset.json"));
    let change = TagChange { add: BTreeSet::from(["before".to_owned()]), ..TagChange::default() };
    archive.tag(&slow, &change).expect("a tag");
    let ids = |text: &str| -> BTreeSet<Id> {
        archive
            .find(&query(text))
            .unwrap_or_else(|why| panic!("{text}: {why}"))
            .into_iter()
            .map(|row| row.id)
            .collect()
    };
    let only = |id: &Id| BTreeSet::from([id.clone()]);
    assert_eq!(ids("kind=iperf3"), BTreeSet::from([slow.clone(), fast.clone()]));
    assert_eq!(ids("kind=iperf3,goodput<5G"), only(&slow));
    assert_eq!(ids("kind=iperf3,goodput>=5G"), only(&fast));
    assert_eq!(ids("tag=before"), only(&slow));
    assert_eq!(ids("kind=iperf3,until=2024-01-01"), only(&slow));
    assert_eq!(ids("kind=run,kind=lab"), BTreeSet::from([run.clone(), lab]));
    assert_eq!(ids("tool=iperf3"), BTreeSet::from([slow, fast]));
    // Host facts match with the host prefix, without it, and as a sysctl.
    let rows = archive.rows(&query(&format!("id={run}"))).expect("an index");
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    let host = row.client.clone().expect("a host");
    assert_eq!(ids(&format!("host={host},kind=run")), only(&run));
    assert_eq!(ids(&format!("host={}*,kind=run", &host[..2])), only(&run));
    let (name, value) =
        row.record.hosts.iter().find(|(name, _)| name.starts_with("client.sysctl.")).expect("a sysctl");
    let name = name.trim_start_matches("client.sysctl.");
    assert_eq!(ids(&format!("setting={name}={value},kind=run")), only(&run));
    assert_eq!(ids("setting=protocol=tcp,kind=run"), only(&run));
    assert!(ids("setting=protocol=udp,kind=run").is_empty());
    let kernel = row.record.kernel.clone().expect("a kernel");
    let version = kernel.split(['-', '+']).next().expect("a version");
    assert!(ids(&format!("kernel={version}")).contains(&run));
    // Records of sweeps are excluded, because they repeat those of their runs.
    assert!(ids("").iter().all(|id| archive.resolve(id.as_str()).expect("it is there").kind != "sweep"));
    assert_eq!(archive.documents(&Query::all(), None).expect("an index").len(), 5);
    assert_eq!(ids("kind=sweep").len(), 1, "a labset is a sweep");
}

#[test]
fn earlier_schemas_are_parsed_and_later_ones_stored() {
    let (_directory, mut archive) = new();
    let lab: String = String::from_utf8(fixture("fixtures/reports/lab.json")).expect("text");
    let earlier = keep(&mut archive, lab.replace("landspeed.lab/2", "landspeed.lab/1").as_bytes());
    let rows = archive.find(&query(&format!("id={earlier}"))).expect("an index");
    assert!(rows.iter().all(|row| row.kind == "lab"));
    assert!(rows.iter().any(|row| row.record.figures.get(Metric::Goodput).is_some()));
    let future = br#"{"schema": "landspeed.run/9", "landspeed": {"version": "9.0.0"}, "started": "2036-01-01T00:00:00Z", "new": [1]}"#;
    let later = keep(&mut archive, future);
    let listed = archive.resolve(later.as_str()).expect("it is there");
    assert!(!listed.understood);
    assert_eq!((listed.schema.as_str(), listed.tool.as_str()), ("landspeed.run/9", "landspeed 9.0.0"));
    assert_eq!(archive.document(&later).expect("it is there"), future);
}

#[test]
fn bytes_that_are_not_a_result_are_refused() {
    let (_directory, mut archive) = new();
    for bytes in [&b""[..], b"{", b"{}", b"hello", b"{\"schema\": \"landspeed.run/1\"}", &[0xff; 100]] {
        assert!(matches!(archive.insert(bytes), Err(ArchiveError::NoResult(_))), "{bytes:?}");
    }
    assert_eq!(archive.count_documents().expect("an index"), 0);
    assert!(archive.verify().expect("a verification").damaged.is_empty());
}

#[test]
fn damaged_documents_are_detected_and_moved() {
    let (_directory, mut archive) = new();
    let whole = keep(&mut archive, &iperf3(1, 1e9));
    let changed = keep(&mut archive, &iperf3(2, 1e9));
    let cut = keep(&mut archive, &iperf3(3, 1e9));
    let missing = keep(&mut archive, &iperf3(4, 1e9));
    std::fs::copy(file_of(&archive, &whole), file_of(&archive, &changed)).expect("a copy");
    let bytes = std::fs::read(file_of(&archive, &cut)).expect("a file");
    std::fs::write(file_of(&archive, &cut), &bytes[..bytes.len() / 2]).expect("a file");
    std::fs::remove_file(file_of(&archive, &missing)).expect("a file");
    assert!(matches!(archive.document(&changed), Err(ArchiveError::Damaged { .. })));
    let found = archive.verify().expect("a verification");
    assert_eq!(found.intact, 1);
    let ids: BTreeSet<&str> = found.damaged.iter().map(|damage| damage.id.as_str()).collect();
    assert_eq!(ids, BTreeSet::from([changed.as_str(), cut.as_str(), missing.as_str()]));
    assert!(archive.directory().join("damaged").join(format!("{cut}.json.gz")).exists());
    assert!(archive.verify().expect("a verification").damaged.is_empty());
    assert_eq!(archive.count_documents().expect("an index"), 1);
}

#[test]
fn unindexed_documents_are_adopted_with_their_tags() {
    let (directory, mut archive) = new();
    let id = keep(&mut archive, &iperf3(1, 1e9));
    let change = TagChange { add: BTreeSet::from(["kept".to_owned()]), ..TagChange::default() };
    archive.tag(&id, &change).expect("a tag");
    drop(archive);
    let path = directory.path().join("archive");
    let index = rusqlite::Connection::open(path.join("index.sqlite")).expect("an index");
    index.execute("DELETE FROM documents", []).expect("no rows");
    drop(index);
    let mut archive = Archive::open_existing(&path).expect("documents are there");
    let found = archive.verify().expect("a verification");
    assert_eq!((found.intact, found.adopted), (1, 1));
    assert_eq!(archive.find(&query("tag=kept")).expect("an index").len(), 1);
    drop(archive);
    std::fs::remove_file(path.join("index.sqlite")).expect("a file");
    let archive = Archive::open_existing(&path).expect("documents are there");
    assert_eq!(archive.find(&query("tag=kept")).expect("an index").len(), 1);
}

#[test]
fn damaged_index_is_rebuilt_from_the_documents() {
    let (directory, mut archive) = new();
    let id = keep(&mut archive, &iperf3(1, 1e9));
    drop(archive);
    let path = directory.path().join("archive");
    std::fs::write(path.join("index.sqlite"), [0x55; 8192]).expect("a file");
    let why = Archive::open_existing(&path).expect_err("the index is damaged");
    assert!(matches!(why, ArchiveError::DamagedIndex { .. }), "{why}");
    assert!(why.advice().is_some_and(|advice| advice.contains("verify --rebuild")));
    let found = Archive::rebuild(&path).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!((found.intact, found.damaged.len()), (1, 0));
    let archive = Archive::open_existing(&path).expect("it is whole");
    assert_eq!(archive.find(&Query::all()).expect("an index")[0].id, id);
}

#[test]
fn index_of_a_later_version_is_refused() {
    let (directory, archive) = new();
    drop(archive);
    let path = directory.path().join("archive");
    let index = rusqlite::Connection::open(path.join("index.sqlite")).expect("an index");
    index.pragma_update(None, "user_version", 99).expect("a version");
    drop(index);
    let why = Archive::open(&path).expect_err("it is of the future");
    assert!(matches!(why, ArchiveError::NewerIndex { found: 99, .. }), "{why}");
}

#[test]
fn file_at_the_archive_path_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    std::fs::write(&file, "x").expect("a file");
    for path in [file.clone(), file.join("below")] {
        let why = Archive::open(&path).expect_err("it is a file");
        assert!(matches!(why, ArchiveError::NotADirectory { .. }), "{why}");
    }
    assert!(matches!(Archive::open_existing(&file), Err(ArchiveError::NotADirectory { .. })));
    let nothing = directory.path().join("nothing");
    assert!(matches!(Archive::open_existing(&nothing), Err(ArchiveError::NoArchive { .. })));
    assert!(!nothing.exists());
}

#[test]
fn concurrent_writers_lose_no_documents() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("archive");
    std::thread::scope(|scope| {
        for writer in 0..4_u64 {
            let path = &path;
            scope.spawn(move || {
                let mut archive = Archive::open(path).unwrap_or_else(|why| panic!("{why}"));
                for i in 0..10 {
                    keep(&mut archive, &iperf3(writer * 1000 + i, 1e9));
                }
            });
        }
    });
    let mut archive = Archive::open_existing(&path).expect("an archive");
    assert_eq!(archive.count_documents().expect("an index"), 40);
    let found = archive.verify().expect("a verification");
    assert_eq!((found.intact, found.adopted, found.damaged.len()), (40, 0, 0));
}

#[test]
fn pruning_keeps_tagged_documents() {
    let (_directory, mut archive) = new();
    let old = keep(&mut archive, &iperf3(1_000_000_000, 1e9));
    let tagged = keep(&mut archive, &iperf3(1_000_000_001, 1e9));
    let ids: Vec<Id> = (0..3).map(|i| keep(&mut archive, &iperf3(1_795_000_000 + i, 1e9))).collect();
    let change = TagChange { add: BTreeSet::from(["record".to_owned()]), ..TagChange::default() };
    archive.tag(&tagged, &change).expect("a tag");
    let named = |archive: &Archive, limits: &Limits| -> Vec<Id> {
        let pruned = archive.prunable(limits).expect("an index");
        assert!(pruned.iter().all(|pruned| pruned.file_bytes > 0));
        pruned.into_iter().map(|pruned| pruned.document.id).collect()
    };
    let year = Limits { older_than: Some(Nanos::from_secs(365 * 86_400)), ..Limits::default() };
    assert_eq!(named(&archive, &year), std::slice::from_ref(&old));
    let keep_two = Limits { keep: Some(2), ..Limits::default() };
    assert_eq!(named(&archive, &keep_two), [old.clone(), ids[0].clone()]);
    let nothing = Limits { max_bytes: Some(0), tagged: true, ..Limits::default() };
    assert_eq!(named(&archive, &nothing).len(), 5);
    archive.remove(&[old]).expect("it is removed");
    assert_eq!(archive.count_documents().expect("an index"), 4);
    let found = archive.verify().expect("a verification");
    assert_eq!((found.intact, found.adopted), (4, 0));
}

#[test]
fn exports_have_every_record() {
    let (_directory, mut archive) = new();
    keep(&mut archive, &fixture(RUN));
    keep(&mut archive, &iperf3(1_700_000_000, 1e9));
    let rows = archive.rows(&Query::all()).expect("an index");
    let text = csv(&rows);
    assert_eq!(text.lines().count(), 3);
    assert!(text.lines().next().expect("names").contains("goodput_bps"));
    let metrics = openmetrics(&rows);
    assert!(metrics.ends_with("# EOF\n"));
    assert!(metrics.contains("# TYPE landspeed_goodput_bits_per_second gauge\n"));
    assert!(metrics.contains(" 1000000000 1700000000.000\n"), "{metrics}");
}

#[cfg(feature = "columns")]
#[test]
fn series_add_up_to_the_document() {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::RowAccessor as _;

    let (_directory, mut archive) = new();
    let bytes = fixture(RUN);
    let id = keep(&mut archive, &bytes);
    let run: landspeed_model::RunDocument = serde_json::from_slice(&bytes).expect("a run");
    let file = std::fs::File::open(archive.series_file(&id).expect("a series")).expect("a file");
    let reader = SerializedFileReader::new(file).expect("Parquet");
    let mut total = 0;
    for row in reader.get_row_iter(None).expect("rows") {
        let row = row.expect("a row");
        if row.get_string(3).expect("a source") == "interval" {
            total += row.get_long(7).expect("bytes");
        }
    }
    let expected: u64 = run.streams.iter().flat_map(|stream| &stream.intervals).map(|interval| interval.bytes).sum();
    assert_eq!(total as u64, expected);
    let table = landspeed_archive::records_table(&archive.rows(&Query::all()).expect("an index")).expect("Parquet");
    assert!(table.starts_with(b"PAR1"));
}
