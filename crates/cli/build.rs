//! Lists the pages of the causes, and compresses the font of PNG figures, without the tables that a rasteriser does not read: hinting programs, glyph
//! names, OpenType layout. 757 KB become 330 KB of the binary.

/// Tables that ab_glyph reads.
#[cfg(feature = "png")]
const TABLES: [&[u8]; 9] = [b"OS/2", b"cmap", b"glyf", b"head", b"hhea", b"hmtx", b"kern", b"loca", b"maxp"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    list_causes();
    #[cfg(feature = "png")]
    write_font();
}

/// Writes `causes.rs`: a slice of the names of the pages in `docs/causes` with their texts.
fn list_causes() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/causes");
    println!("cargo::rerun-if-changed={directory}");
    let entries = std::fs::read_dir(directory).expect("the pages of the causes");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let rows = files.iter().map(|file| {
        let name = file.file_stem().and_then(|name| name.to_str()).expect("a name");
        format!("({name:?}, include_str!({:?})),\n", file.to_str().expect("a path of UTF-8"))
    });
    let path = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join("causes.rs");
    std::fs::write(path, format!("&[\n{}]", rows.collect::<String>())).expect("the directory of outputs is writable");
}

#[cfg(feature = "png")]
fn write_font() {
    use std::io::Write as _;
    let path = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join("font.zlib");
    let file = std::fs::File::create(path).expect("the directory of outputs is writable");
    let mut encoder = flate2::write::ZlibEncoder::new(file, flate2::Compression::best());
    encoder.write_all(&subset(dejavu::sans::regular())).and_then(|()| encoder.try_finish()).expect("room");
}

/// Returns the font with only [`TABLES`] (OpenType: 12 bytes of header, 16 bytes per table: tag, checksum, offset,
/// length).
#[cfg(feature = "png")]
fn subset(font: &[u8]) -> Vec<u8> {
    let word = |at: usize| u32::from_be_bytes(font[at..at + 4].try_into().expect("four bytes")) as usize;
    let count = usize::from(u16::from_be_bytes([font[4], font[5]]));
    let records = (0..count).map(|number| 12 + 16 * number).filter(|&at| TABLES.contains(&&font[at..at + 4]));
    let mut header = [&font[..4], &(TABLES.len() as u16).to_be_bytes(), &font[6..12]].concat();
    let mut tables = Vec::new();
    for at in records {
        let offset = 12 + 16 * TABLES.len() + tables.len();
        header.extend([&font[at..at + 8], &(offset as u32).to_be_bytes(), &font[at + 12..at + 16]].concat());
        tables.extend(&font[word(at + 8)..][..word(at + 12)]);
        tables.resize(tables.len().next_multiple_of(4), 0);
    }
    header.extend(tables);
    header
}
