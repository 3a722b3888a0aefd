//! The template, the schema, and estimates.

use proptest::prelude::*;

use super::super::*;
use super::BASE;

fn as_json(text: &str) -> serde_json::Value {
    serde_json::to_value(toml::from_str::<toml::Table>(text).expect("TOML")).expect("plain data")
}

#[test]
fn the_template_is_valid_and_has_no_warning() {
    let loaded = load(TEMPLATE).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.cells.len(), 1);
    assert_eq!(loaded.warnings, []);
}

#[test]
fn commented_settings_of_the_template_are_accepted() {
    let (mut vary, mut program) = (false, false);
    let uncommented: Vec<String> = TEMPLATE
        .lines()
        .map(|line| {
            vary |= line == "# [[vary]]";
            let starts = ["# [[program]]", "# [[event]]"].contains(&line);
            program = starts || (program && line.starts_with("# ") && !line.starts_with("# ─"));
            let bare = line.strip_prefix("# ").unwrap_or(line);
            let offered =
                ["kernel = ", "memory = ", "gro = ", "delayed-ack = ", "sysctl = ", "qdisc = ", "port.east = "];
            let is_setting = bare.starts_with('[') || bare.contains(" = ");
            if ((vary || program) && is_setting) || offered.iter().any(|key| bare.starts_with(key)) {
                bare.to_owned()
            } else {
                line.to_owned()
            }
        })
        .collect();
    let loaded = load(&uncommented.join("\n")).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.cells.len(), 4);
    assert_eq!(loaded.cells[3].values["buffer"], "64MB");
    let names: Vec<String> = loaded.cells[0].scenario.program.iter().map(Program::default_name).collect();
    assert_eq!(names, ["python3", "curl"]);
    assert_eq!(loaded.cells[0].scenario.event.len(), 3);
}

#[test]
fn examples_are_valid_and_change() {
    for (text, cells) in [(SATELLITE, 1), (CELLULAR, 2)] {
        let loaded = load(text).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(loaded.cells.len(), cells);
        let scenario = &loaded.cells[0].scenario;
        assert!((0..scenario.link.len()).any(|link| scenario.changes(link)));
    }
}

#[test]
fn the_example_of_a_slow_receiver_has_two_cells() {
    let loaded = load(SLOW_RECEIVER).unwrap_or_else(|problems| panic!("{problems}"));
    let cores: Vec<_> = loaded.cells.iter().map(|cell| cell.scenario.host["receiver"].cpu.as_ref()?.cores).collect();
    assert_eq!(cores, [Some(1), Some(2)]);
    assert_eq!(loaded.warnings, []);
}

#[test]
fn the_schema_and_the_parser_agree() {
    let validator = jsonschema::validator_for(&schema()).expect("a schema");
    for good in [TEMPLATE, SATELLITE, CELLULAR, SLOW_RECEIVER, BASE] {
        let errors: Vec<String> = validator.iter_errors(&as_json(good)).map(|e| e.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new());
    }
    for (from, to) in [
        ("kind = \"bfifo\"", "kind = \"fifo\""),
        ("rate = \"10G\"", "rte = \"10G\""),
        ("name = \"two hosts\"", "name = 3"),
        ("[\"a\", \"s\"]", "[\"a\"]"),
    ] {
        assert!(!validator.is_valid(&as_json(&BASE.replacen(from, to, 1))), "{to}");
    }
}

#[test]
fn memory_covers_the_data_of_a_full_path() {
    let memory = |text: &str| estimate(&load(text).unwrap_or_else(|p| panic!("{p}")).cells[0].scenario).memory_bytes;
    let short = memory(&BASE.replace("25ms", "1ms"));
    let long = memory(&BASE.replace("25ms", "100ms"));
    // 10 Gb/s for an RTT that is 200 ms longer are 250 MB, held by the sender and by the path.
    assert!((200_000_000..1_500_000_000).contains(&(long - short)), "{short} {long}");
    let twice = memory(&format!("{BASE}[[flow]]\nfrom = \"a\"\nto = \"b\"\n"));
    assert_eq!(twice, memory(BASE), "flows that meet share the path");
    assert_eq!(memory(&format!("memory = \"3GiB\"\n{BASE}")), 3 << 30);
}

#[test]
fn programs_need_memory_and_time_for_a_full_path() {
    let of = |text: &str| estimate(&load(text).unwrap_or_else(|p| panic!("{p}")).cells[0].scenario);
    let bare = BASE.split("[[flow]]").next().expect("some");
    let program = |host: &str, keys: &str| format!("[[program]]\nhost = \"{host}\"\nrun = [\"true\"]\n{keys}\n");
    let one = of(&format!("{bare}{}", program("a", "time = \"3s\"")));
    assert!((one.virtual_s - 3.0).abs() < 1e-9 && one.packets < 1.0, "a single host has no peer: {one:?}");
    let two = of(&format!("{bare}{}{}", program("a", "at = \"1s\""), program("b", "stop = \"end\"")));
    assert!((two.virtual_s - 11.0).abs() < 1e-9, "{two:?}");
    let flow = of(BASE);
    assert!((two.packets / flow.packets - 1.1).abs() < 0.1, "{two:?} {flow:?}");
    assert!(two.memory_bytes > flow.memory_bytes + (768 << 20) && one.memory_bytes < two.memory_bytes);
}

#[test]
fn a_longer_or_faster_scenario_takes_longer() {
    let of = |text: &str| estimate(&load(text).unwrap_or_else(|p| panic!("{p}")).cells[0].scenario);
    let base = of(BASE);
    assert!((base.virtual_s - 10.0).abs() < 1e-9);
    let packets = 10e9 * 10.0 / 8.0 / 1460.0 * 1.5;
    assert!((base.packets / packets - 1.0).abs() < 0.05, "{}", base.packets);
    assert!(of(&format!("time = \"20s\"\n{BASE}")).wall_s > 1.8 * base.wall_s);
    assert!(of(&BASE.replace("10G", "1G")).wall_s < base.wall_s / 3.0);
    // Loss that slows TCP down makes a run short, unless the congestion control tolerates loss.
    let lossy = BASE.replacen("delay = \"25ms\"", "delay = \"25ms\"\nloss = \"1%\"", 1);
    assert!(of(&lossy).packets < base.packets / 100.0);
    let bbr = of(&lossy.replacen("[host.a]", "[host.a]\ncongestion = \"bbr\"", 1));
    assert!((bbr.packets / base.packets - 1.0).abs() < 0.01);
    // Two flows over the same link do not carry twice as much.
    let twice = of(&format!("{BASE}[[flow]]\nfrom = \"a\"\nto = \"b\"\n"));
    assert!((twice.packets / base.packets - 1.0).abs() < 0.01);
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in ".{0,200}") {
        let _ = load(&text).map_err(|problems| problems.to_string());
    }

    #[test]
    fn corrupted_scenarios_never_panic(at in 0..TEMPLATE.len(), length in 0usize..60, put in "[ -~\n\u{e9}]{0,12}") {
        let floor = |mut i: usize| { while !TEMPLATE.is_char_boundary(i) { i -= 1; } i };
        let (start, end) = (floor(at), floor((at + length).min(TEMPLATE.len())));
        let text = format!("{}{put}{}", &TEMPLATE[..start], &TEMPLATE[end..]);
        if let Ok(loaded) = load(&text).map_err(|problems| problems.to_string()) {
            for cell in loaded.cells {
                let _ = estimate(&cell.scenario);
            }
        }
    }

    #[test]
    fn arbitrary_quantities_never_panic(rate in any::<u64>(), delay in any::<u64>(), limit in any::<u64>(), bytes in any::<u64>()) {
        let text = BASE.replace("\"10G\"", &format!("\"{rate}\"")).replace("25ms", &format!("{delay}ns")).replace("\"1MB\"", &format!("\"{limit}B\""));
        let cells = read(&format!("{text}bytes = \"{bytes}\"\n")).unwrap_or_else(|problems| panic!("{problems}"));
        let _ = (judge(&cells[0].scenario), estimate(&cells[0].scenario));
    }
}
