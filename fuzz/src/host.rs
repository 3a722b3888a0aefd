//! Properties that hold for any recorded host, from any source.
//!
//! A separate file, so that the tests of `landspeed-host` can include it without the other properties.

use std::io;
use std::path::Path;

use landspeed_host::{Host, InterfaceAnswers, KernelAnswers, RecordedHost, collect};
use landspeed_model::Fact;

/// A host where every file contains the same text, and every directory lists the words of that text.
struct AnyPathHost<'a> {
    text: &'a str,
    answers: Option<&'a RecordedHost>,
}

impl Host for AnyPathHost<'_> {
    fn read(&self, _path: &str) -> io::Result<String> {
        Ok(self.text.to_owned())
    }

    fn link(&self, _path: &str) -> io::Result<String> {
        Ok(self.text.to_owned())
    }

    fn names(&self, _directory: &str, prefix: &str) -> io::Result<Vec<String>> {
        // Few words, because each becomes a queue or a CPU that is read many times.
        let words = self.text.split_whitespace().take(4);
        Ok(words.map(|word| format!("{prefix}{word}")).collect())
    }

    fn kernel(&self) -> KernelAnswers {
        self.answers.map(Host::kernel).unwrap_or_default()
    }

    fn interface(&self, name: &str) -> InterfaceAnswers {
        self.answers.map(|host| host.interface(name)).unwrap_or_default()
    }

    fn is_recorded(&self) -> bool {
        true
    }

    fn pci_config(&self, _address: &str) -> Fact<Vec<u8>> {
        Fact::Known(self.text.as_bytes().to_vec())
    }
}

/// Uses the bytes as `kernel.json`, and as the text of every file. The facts must survive a round trip through
/// JSON.
///
/// # Panics
/// If the property is violated.
pub fn recorded_host(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let recorded = RecordedHost::with_answers(Path::new("/nonexistent"), bytes).ok();
    for answers in [None, recorded.as_ref()] {
        let facts = collect(&AnyPathHost { text: &text, answers });
        let written = serde_json::to_string(&facts).expect("facts can be written");
        let read = serde_json::from_str(&written).expect("what was written can be read");
        assert!(facts == read, "a fact changed on its way: {written}");
        if recorded.is_none() {
            break;
        }
    }
}
