//! Tests: pages of the documentation site that are generated from the program: every command from its definition, every
//! document from its schema. `cargo xtask docs` runs these tests with [`DIRECTORY`] set, and the pages are there.

mod commands;
mod documents;

/// The environment variable with the directory to write to.
const DIRECTORY: &str = "LANDSPEED_REFERENCE";

/// A page: its path below the reference, such as `commands/landspeed-run.md`, and its text, Markdown.
pub type ReferencePage = (String, String);

/// Returns every page.
pub fn pages() -> Vec<ReferencePage> {
    [commands::pages(), documents::pages()].concat()
}

/// Escapes text for a cell of a table, outside of code: nothing in it is markup, and it stays in the cell.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            out.push('`');
        }
        for char in part.chars() {
            match char {
                '\n' => out.push(' '),
                '|' => out.push_str("\\|"),
                '<' | '*' | '_' | '[' if index % 2 == 0 => out.extend(['\\', char]),
                char => out.push(char),
            }
        }
    }
    out
}

/// Code in a cell of a table.
fn code_cell(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

#[test]
fn pages_are_written() {
    let own = tempfile::tempdir().expect("a temporary directory");
    let directory = std::env::var_os(DIRECTORY).map_or_else(|| own.path().to_owned(), std::path::PathBuf::from);
    for (path, text) in pages() {
        let path = directory.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        std::fs::write(path, text).expect("writable");
    }
    assert!(directory.join("commands/landspeed.md").exists());
}

fn page(name: &str) -> String {
    let found = pages().into_iter().find(|(path, _)| path == name);
    found.unwrap_or_else(|| panic!("no {name}")).1
}

#[test]
fn every_command_and_document_has_a_page() {
    let names: Vec<String> = pages().into_iter().map(|(path, _)| path).collect();
    for name in ["commands/landspeed.md", "commands/landspeed-lab-run.md", "commands/landspeed-explain.md"] {
        assert!(names.iter().any(|path| path == name), "{name}: {names:?}");
    }
    for name in crate::schema::names() {
        assert!(names.contains(&format!("documents/{name}.md")), "{name}");
    }
}

#[test]
fn pages_of_commands_have_the_options_of_the_help() {
    let run = page("commands/landspeed-run.md");
    assert!(run.starts_with("# landspeed run\n\nMeasure a path to a server"), "{run}");
    for part in ["\n| `-t`, `--time <", "\n## Examples\n", "landspeed run dtn.example -R -P 4", "\n## Exit status\n"]
    {
        assert!(run.contains(part), "{part}: {run}");
    }
    let lab = page("commands/landspeed-lab.md");
    assert!(lab.contains("](landspeed-lab-run.md) |"), "{lab}");
}

#[test]
fn pages_of_documents_have_full_paths() {
    let run = page("documents/run.md");
    for path in
        [".verdict.cause", ".streams[].sender.samples[].tcp.rtt_us", ".summary.goodput_bps", ".udp.lost_packets"]
    {
        assert!(run.contains(&format!("\n| `{path}` | ")), "{path}: {run}");
    }
    // What is a document itself has its own page.
    let lab = page("documents/lab.md");
    assert!(lab.contains("[RunDocument](run.md)"), "{lab}");
}

#[test]
fn rows_of_tables_have_their_number_of_cells() {
    for (name, text) in pages() {
        let mut columns = 0;
        for line in text.lines() {
            let cells = line.replace("\\|", "").matches('|').count();
            if line.starts_with("|---") {
                columns = cells;
            }
            if line.starts_with("| `") {
                assert_eq!(cells, columns, "{name}: {line}");
            }
        }
    }
}
