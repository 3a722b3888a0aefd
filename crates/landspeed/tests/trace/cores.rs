//! The trace document does not depend on the number of cores.

use landspeed_wire::LinkType;
use landspeed_wire::capture::write;

use crate::trace::document;

/// Packets of each capture.
const PACKETS: u32 = 60_000;

/// A connection's data and ACKs; from packet `others_from` on, every fifth packet belongs to a new
/// connection.
fn capture(others_from: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    write::pcap_header(&mut bytes, LinkType::ETHERNET, 96);
    for number in 0..PACKETS {
        let other = if number >= others_from && number % 5 == 0 { number } else { 0 };
        let acknowledges = number % 3 == 2;
        let payload = if acknowledges { 0 } else { 1_000_u16 };
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
        frame.extend((40 + payload).to_be_bytes());
        frame.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
        let ends = [[10, 1, (other >> 8) as u8, other as u8], [10, 0, 0, 2]];
        let (from, to) = if acknowledges { (1, 0) } else { (0, 1) };
        frame.extend([ends[from], ends[to]].concat());
        frame.extend([[0x9c, 0x40], [0x14, 0x51]][from]);
        frame.extend([[0x9c, 0x40], [0x14, 0x51]][to]);
        let sent = (number / 3 * 2 + number % 3) * 1_000;
        let numbers = if acknowledges { [7, sent] } else { [sent, 7] };
        for number in numbers {
            frame.extend(number.to_be_bytes());
        }
        frame.extend([0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        frame.resize(90, 0);
        let time_ns = 1_000_000_000 + u64::from(number) * 37_000;
        write::pcap_record(&mut bytes, time_ns, &frame, u32::from(payload) + 54);
    }
    bytes
}

#[test]
fn trace_is_independent_of_the_number_of_cores() {
    let directory = tempfile::tempdir().expect("a directory");
    let alone = capture(PACKETS);
    let cut = alone[..alone.len() - 33].to_vec();
    let mut damaged = alone.clone();
    // The length field of a record in the middle.
    let at = 24 + 40_000 * 106 + 8;
    damaged[at..at + 4].fill(0xff);
    let cases = [("alone", &alone), ("cut", &cut), ("damaged", &damaged), ("many later", &capture(PACKETS / 2))];
    for (name, bytes) in cases {
        let file = directory.path().join("a.pcap");
        std::fs::write(&file, bytes).expect("room");
        let file = file.to_str().expect("plain");
        let analysed = |cores: &str| {
            let mut document = document(&[file, "--cores", cores, "--top", "10000"]);
            document["command"].take();
            document
        };
        let one = analysed("1");
        let frames = if name == "damaged" { 40_000 } else { PACKETS - u32::from(name == "cut") };
        assert_eq!(one["capture"]["frames"], frames, "{name}");
        for cores in ["2", "3"] {
            assert_eq!(analysed(cores), one, "{name}, {cores} cores");
        }
    }
}
