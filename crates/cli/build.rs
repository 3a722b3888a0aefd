//! Compresses the font of PNG figures, without the tables that a rasteriser does not read: hinting programs, glyph
//! names, OpenType layout. 757 KB become 330 KB of the binary.

/// Tables that ab_glyph reads.
#[cfg(feature = "png")]
const TABLES: [&[u8]; 9] = [b"OS/2", b"cmap", b"glyf", b"head", b"hhea", b"hmtx", b"kern", b"loca", b"maxp"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "png")]
    write_font();
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
