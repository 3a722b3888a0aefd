//! Screens compared with the files in `golden/`.

use std::fmt::Write as _;
use std::path::Path;

use landspeed_model::{WatchDocument, WatchFlow, WatchRecent, WatchRole};
use landspeed_testkit::golden;
use landspeed_watch::{FlowStatus, LiveStatus, Point};
use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;

use super::view::Action;
use super::{Palette, View, render_screen, terminal};

const S: u64 = 1_000_000_000;

fn recorded() -> WatchDocument {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/documents/watch.json");
    let text = std::fs::read_to_string(path).expect("the recorded document");
    serde_json::from_str(&text).expect("a document")
}

/// Returns the live state of a recorded flow.
fn flow(flow: &WatchFlow) -> FlowStatus {
    FlowStatus {
        cookie: cookie(flow),
        local: flow.local.clone(),
        remote: flow.remote.clone(),
        role: flow.role,
        pid: flow.pid,
        command: flow.command.clone(),
        uid: flow.uid,
        since_ns: flow.seen_ns.0,
        rtt_us: flow.rtt_us,
        min_rtt_us: flow.min_rtt_us,
        cwnd: flow.cwnd,
        recent: flow.recent,
        verdict: flow.timeline.last().copied(),
    }
}

fn cookie(flow: &WatchFlow) -> u64 {
    u64::from_str_radix(&flow.cookie, 16).expect("hexadecimal")
}

/// Returns a view of the recorded flows and one with long addresses and an unknown process.
fn view() -> View {
    let document = recorded();
    let mut flows: Vec<FlowStatus> = document.flows.iter().map(flow).collect();
    let stranger = FlowStatus {
        cookie: 1,
        local: "[2001:db8:aaaa:bbbb:cccc:dddd:eeee:1]:443".to_owned(),
        remote: "[2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff]:60111".to_owned(),
        role: WatchRole::Receiver,
        pid: None,
        command: None,
        uid: 1000,
        recent: Some(WatchRecent {
            goodput_bps: 9.41e9,
            retransmits_per_s: 0.0,
            window_use: None,
            queue_bytes: 123_456,
            process_cpu: None,
        }),
        verdict: None,
        ..flows[0].clone()
    };
    flows.push(stranger);
    let mut view = View::default();
    view.update(LiveStatus {
        elapsed_ns: document.duration_ns,
        connections: document.sockets.now + 1,
        cpu_share: document.overhead.cpu_share,
        flows,
    });
    view
}

/// Returns the text of a screen of this size.
fn shown(view: &mut View, (width, height): (u16, u16)) -> String {
    let lines = render_screen(view, width.into(), height.into(), Palette { colors: false });
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal in memory");
    terminal.draw(|frame| terminal::place(&lines, frame.area(), frame.buffer_mut())).expect("drawn");
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for y in 0..height {
        let line: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Returns one minute of samples in which rate and RTT rise, then fall.
fn minute() -> Vec<Point> {
    let mut acked = 0;
    (0..=120_u64)
        .map(|n| {
            let height = if n < 80 { n } else { 160 - n };
            acked += height * 20_000;
            Point {
                t_ns: n * S / 2,
                acked,
                received: 0,
                retransmits: (n / 40) as u32,
                rtt_us: Some(20_000 + height as u32 * 100),
                cwnd: 10 + height as u32,
            }
        })
        .collect()
}

#[test]
fn list_matches_golden_file() {
    let mut text = String::new();
    for size in [(80, 12), (160, 10), (60, 10), (59, 10)] {
        let _ = write!(text, "# landspeed watch in {}×{}\n{}", size.0, size.1, shown(&mut view(), size));
    }
    let mut view = view();
    for action in [Action::Filter, Action::Letter('8'), Action::Letter('0'), Action::Pause, Action::Sort(7)] {
        view.apply(action);
    }
    let _ = write!(text, "# the same, paused, while a filter is typed\n{}", shown(&mut view, (80, 10)));
    view.apply(Action::Letter('x'));
    view.apply(Action::Accept);
    let _ = write!(text, "# the same, with a filter that no flow passes\n{}", shown(&mut view, (80, 10)));
    view.apply(Action::Help);
    let _ = write!(text, "# the list of keys\n{}", shown(&mut view, (80, 14)));
    golden::same("watch-screen.txt", &text);
}

#[test]
fn flow_page_matches_golden_file() {
    let document = recorded();
    let mut text = String::new();
    for (flow, size) in [(0, (80, 40)), (1, (160, 32)), (1, (60, 12))] {
        let mut view = view();
        view.live_status.elapsed_ns = 60 * S;
        let described = document.flows[flow].clone();
        let place = view.rows().iter().position(|row| row.cookie == cookie(&described)).expect("in the list");
        view.apply(Action::Move(place.cast_signed()));
        view.apply(Action::Open);
        let opened = view.opened.as_mut().expect("open");
        (opened.flow, opened.minute) = (Some(described), minute());
        let _ = write!(text, "# landspeed watch, a flow's page in {}×{}\n{}", size.0, size.1, shown(&mut view, size));
        if size.1 < 20 {
            view.apply(Action::Last);
            let _ = write!(text, "# the same, scrolled to its end\n{}", shown(&mut view, size));
        }
    }
    golden::same("watch-page.txt", &text);
}

#[test]
fn no_colours_are_used_when_disabled() {
    for width in [60_u16, 66, 79, 80, 120, 159, 160, 200] {
        for height in [10_u16, 24, 50] {
            let mut view = view();
            let plain = render_screen(&mut view, width.into(), height.into(), Palette { colors: false });
            assert!(plain.len() <= height.into());
            let styles = || plain.iter().flat_map(|line| line.spans.iter().map(|span| span.style.patch(line.style)));
            assert!(styles().all(|style| style.fg.is_none() && style.bg.is_none()), "{width}×{height}");
        }
    }
}
