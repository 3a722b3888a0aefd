//! Damaged and random files must give an error, never a panic.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proptest::prelude::*;

#[path = "../../../fuzz/src/results.rs"]
mod claims;

/// Results of every program, and landspeed documents.
static SAMPLES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let list = |directory: &str| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(fixtures.join(directory)).expect("fixtures");
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        paths
    };
    let paths = ["foreign", "iperf3/3.18", "documents"].into_iter().flat_map(list);
    paths.map(|path| std::fs::read(path).expect("a fixture")).collect()
});

#[test]
fn all_samples_have_finite_figures() {
    for sample in SAMPLES.iter() {
        claims::result(sample);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        claims::result(&bytes);
    }

    #[test]
    fn damaged_results_never_panic(
        sample in 0..SAMPLES.len(),
        cut in any::<prop::sample::Index>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        // Large samples would take too long.
        let whole = &SAMPLES[sample];
        let mut bytes = whole[..whole.len().min(40_000)].to_vec();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        claims::result(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        claims::result(&bytes);
    }

    #[test]
    fn numbers_out_of_range_never_panic(sample in 0..SAMPLES.len(), digit in b'0'..=b'9', times in 1_usize..30) {
        let whole = &SAMPLES[sample];
        prop_assume!(whole.len() <= 40_000);
        let bytes: Vec<u8> = whole
            .iter()
            .flat_map(|byte| vec![if byte.is_ascii_digit() { digit } else { *byte }; if byte.is_ascii_digit() { times } else { 1 }])
            .collect();
        claims::result(&bytes);
    }
}
