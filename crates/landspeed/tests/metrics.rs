//! `serve --metrics`, `watch --metrics` and `mesh --metrics` with Prometheus, promtool and the alert rules.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use landspeed_sys::clock;
use landspeed_testkit::process::{Process, free_port, until};
use landspeed_testkit::skip;
use serde_json::{Value, json};

use crate::common::{landspeed, list};
use crate::hostile::common::{Server, TIMEOUT_S, assert_short_error};

/// Variable with the directory of `prometheus` and `promtool` (`cargo xtask test` sets it).
const VARIABLE: &str = "LANDSPEED_PROMETHEUS";

/// Returns the path of `prometheus` or `promtool`, downloaded or installed.
fn program(name: &str) -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).map(|directory| Path::new(&directory).join(name));
    let runs = |path: &PathBuf| {
        let version = Command::new(path).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    named.into_iter().chain([PathBuf::from(name)]).find(runs)
}

/// Skips the test without Prometheus' programs.
macro_rules! program_or_skip {
    ($name:literal) => {
        match program($name) {
            Some(path) => path,
            None => skip!("{VARIABLE} names no {}, and it is not installed", $name),
        }
    };
}

/// Ends the threads of a test when dropped, also by a panic: their scope waits for them.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the address in the line that announces the metrics.
fn metrics_address(text: &str) -> Option<SocketAddr> {
    let line = text.lines().find(|line| line.contains("metrics on http://"))?;
    line.split_once("http://")?.1.strip_suffix("/metrics")?.parse().ok()
}

/// Returns the body of an answer to `GET path`; empty if the connection fails.
fn get(addr: SocketAddr, path: &str, accept: &str) -> String {
    let request = format!("GET {path} HTTP/1.0\r\nHost: {addr}\r\nAccept: {accept}\r\n\r\n");
    let mut answer = String::new();
    let asked = TcpStream::connect(addr).and_then(|mut stream| {
        stream.set_read_timeout(Some(Duration::from_secs(TIMEOUT_S)))?;
        stream.write_all(request.as_bytes())?;
        stream.read_to_string(&mut answer)
    });
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    asked.ok().and(body).unwrap_or_default()
}

fn scrape(addr: SocketAddr) -> String {
    get(addr, "/metrics", "*/*")
}

/// The value of a sample, by its name with labels.
fn value(text: &str, sample: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '))?;
    line.parse().ok()
}

/// Waits for a scrape in which `holds`, and returns it.
fn scrape_until(addr: SocketAddr, what: &str, holds: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    until(TIMEOUT_S, what, || {
        text = scrape(addr);
        holds(&text)
    });
    text
}

/// Starts a server with metrics, and returns their address.
fn serve(args: &[&str]) -> (Server, SocketAddr) {
    let server = Server::start(&[&["--no-iperf3", "--metrics", "127.0.0.1:0"], args].concat());
    let mut found = None;
    until(TIMEOUT_S, "the address of the metrics", || {
        found = metrics_address(&server.process.stdout());
        found.is_some()
    });
    (server, found.expect("just found"))
}

/// Asserts that a text has no address, only documented names, and passes `promtool check metrics`.
#[track_caller]
fn assert_clean(text: &str) {
    let page = include_str!("../../../docs/metrics.md");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        assert!(page.contains(&format!("| `{name}` |")), "docs/metrics.md lacks {name}");
        assert!(!line.contains("127.0.0.1") && !line.contains("::"), "{line}");
    }
    let Some(promtool) = program("promtool") else { return };
    let mut check = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    check.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
    let said = check.wait_with_output().expect("it ends");
    let complaints = [said.stdout, said.stderr].concat();
    assert!(said.status.success() && complaints.is_empty(), "{}", String::from_utf8_lossy(&complaints));
}

#[test]
fn mesh_exports_one_series_for_each_pair_and_figure() {
    let directory = tempfile::tempdir().expect("a directory");
    let port = free_port();
    let server = Server::start(&["--no-iperf3"]);
    let inventory = format!(
        "name = \"site\"\n[[host]]\nname = \"dtn\"\naddress = \"{}\"\nbytes-per-day = \"1GB\"\n\
         [[host]]\nname = \"gone\"\naddress = \"127.0.0.1:{port}\"\n[[host]]\nname = \"here\"\nlocal = true\n\
         [[test]]\nname = \"tcp\"\npairs = \"star\"\ncenter = \"here\"\ninterval = \"4s\"\n\
         [test.run]\nrate = \"5M\"\ntime = \"200ms\"\n",
        server.addr
    );
    let path = directory.path().join("site.toml");
    std::fs::write(&path, inventory).expect("space");
    let mut command = landspeed();
    command.arg("mesh").arg(&path).args(["--metrics", "127.0.0.1:0"]).env("LANDSPEED_ARCHIVE", directory.path());
    let mesh = Process::start(command);
    let mut found = None;
    until(TIMEOUT_S, "the address of the metrics", || {
        found = metrics_address(&mesh.stderr());
        found.is_some()
    });
    let addr = found.expect("just found");
    let pair = |from: &str, to: &str| format!("{{test=\"tcp\",from=\"{from}\",to=\"{to}\"}}");
    let goodput = format!("landspeed_mesh_goodput_bytes_per_second{}", pair("here", "dtn"));
    let text = scrape_until(addr, "a goodput, and a host that is gone", |text| {
        value(text, &goodput).is_some() && value(text, "landspeed_mesh_reachable{name=\"gone\"}") == Some(0.0)
    });
    assert_clean(&text);
    assert!(value(&text, &goodput).is_some_and(|bytes| (100_000.0..1e6).contains(&bytes)), "{text}");
    let at = value(&text, &format!("landspeed_mesh_measured_timestamp_seconds{}", pair("here", "dtn")));
    assert!(at.is_some_and(|at| at > 1.7e9), "{text}");
    let of_gone = text.lines().filter(|line| line.contains("to=\"gone\"")).collect::<Vec<_>>();
    assert!(of_gone.iter().all(|line| line.starts_with("landspeed_mesh_failures{")), "unknown: {of_gone:?}");
    assert!(value(&text, "landspeed_mesh_budget_bytes{kind=\"host\",name=\"dtn\"}") == Some(1e9), "{text}");
    assert_eq!(value(&text, "landspeed_mesh_interval_seconds{test=\"tcp\"}"), Some(4.0), "{text}");
    let used = value(&text, "landspeed_mesh_used_bytes{kind=\"host\",name=\"dtn\"}").expect("a count");
    assert!(used > 100_000.0, "{text}");
    let ended = |outcome: &str| {
        let sample = format!("landspeed_mesh_tests_ended_total{{test=\"tcp\",outcome=\"{outcome}\"}}");
        value(&text, &sample).expect("a counter")
    };
    assert!(ended("client-unreachable") + ended("server-unreachable") >= 1.0, "{text}");
    mesh.signal("INT");
    assert_eq!(mesh.end(TIMEOUT_S).code, 1);
}

#[test]
fn serve_counts_tests_refusals_and_bytes() {
    let (server, addr) = serve(&["--max-duration", "5s"]);
    let fresh = scrape(addr);
    assert_eq!(value(&fresh, "landspeed_serve_tests_limit"), Some(128.0), "{fresh}");
    assert!(!fresh.contains("last_test"), "unknown before the first test: {fresh}");
    for args in [&["-t", "0.2"][..], &["-t", "0.2", "--reverse"], &["-t", "0.2", "--rr"], &["-t", "9"]] {
        server.run(args);
    }
    let kind = |name: &str, protocol: &str, direction: &str, more: &str| {
        format!("{name}{{client=\"landspeed\",protocol=\"{protocol}\",direction=\"{direction}\"{more}}}")
    };
    let ended = |protocol, direction| {
        kind("landspeed_serve_tests_ended_total", protocol, direction, ",outcome=\"completed\"")
    };
    let refused = "landspeed_serve_refused_total{reason=\"not-permitted\"}";
    let text = scrape_until(addr, "three completed tests and a refusal", |text| {
        let completed = [ended("tcp", "upload"), ended("tcp", "download"), ended("tcp-rr", "both")];
        completed.iter().all(|sample| value(text, sample) == Some(1.0)) && value(text, refused) == Some(1.0)
    });
    assert_eq!(value(&text, &kind("landspeed_serve_tests_started_total", "tcp", "upload", "")), Some(1.0));
    let positive = |sample: &str| value(&text, sample).is_some_and(|value| value > 0.0);
    for sample in [
        "landspeed_serve_received_bytes_total{client=\"landspeed\",protocol=\"tcp\"}",
        "landspeed_serve_sent_bytes_total{client=\"landspeed\",protocol=\"tcp\"}",
        "landspeed_serve_requests_answered_total{protocol=\"tcp-rr\"}",
        &kind("landspeed_serve_last_test_received_bytes_per_second", "tcp", "upload", ""),
        &kind("landspeed_serve_last_test_sent_bytes_per_second", "tcp", "download", ""),
        "landspeed_serve_last_test_completed_timestamp_seconds",
        "process_cpu_seconds_total",
    ] {
        assert!(positive(sample), "{sample}: {text}");
    }
    assert_eq!(value(&text, "landspeed_serve_tests_running{client=\"landspeed\",protocol=\"tcp\"}"), Some(0.0));
    assert_clean(&text);
    let open = get(addr, "/metrics", "application/openmetrics-text;version=1.0.0");
    assert!(open.ends_with("\n# EOF\n") && open.contains("# UNIT landspeed_serve_received_bytes bytes\n"), "{open}");
}

#[test]
fn a_flood_of_scrapers_disturbs_no_test() {
    let (server, addr) = serve(&[]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        for _ in 0..50 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    scrape(addr);
                    clock::sleep_until(clock::monotonic_ns() + 20_000_000);
                }
            });
        }
        let silent: Vec<_> = (0..100).map(|_| TcpStream::connect(addr)).collect();
        server.run(&["-t", "0.5", "--rate", "50M"]).assert_clean();
        // Listeners, 16 connections of scrapers and those of the test: far fewer than one for each scraper.
        let (descriptors, threads) = server.process.resources();
        assert!(descriptors < 50 && threads < 15, "{descriptors} descriptors, {threads} threads");
        drop(silent);
    });
    assert!(
        value(&scrape_until(addr, "an answer", |text| !text.is_empty()), "landspeed_serve_tests_limit").is_some()
    );
}

#[test]
fn unusable_metrics_addresses_are_short_errors() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = taken.local_addr().expect("an address").to_string();
    let commands = [&["serve", "--no-iperf3", "--listen", "127.0.0.1:0", "--metrics"][..], &["watch", "--metrics"]];
    for command in commands {
        let ended = Process::start(landspeed().args(command).arg(&addr)).end(TIMEOUT_S);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains(&format!("cannot serve metrics on {addr}: ")), "{}", ended.stderr);
        assert_short_error(&ended);
        let ended = Process::start(landspeed().args(command).arg("9210")).end(TIMEOUT_S);
        assert!(ended.code == 2 && ended.stderr.contains("write 127.0.0.1:9210"), "{}", ended.stderr);
    }
}

#[test]
fn configuration_files_set_the_metrics_address() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("serve.toml");
    std::fs::write(&path, "metrics = \"127.0.0.1:0\"\nno_iperf3 = true\n").expect("written");
    let path = path.to_str().expect("a name");
    let server = Server::start(&["--config", path]);
    until(TIMEOUT_S, "the address of the metrics", || metrics_address(&server.process.stdout()).is_some());
    std::fs::write(path, "metrics = \"9210\"\n").expect("written");
    let ended = Process::start(landspeed().args(["serve", "--config", path])).end(TIMEOUT_S);
    assert!(ended.code == 2 && ended.stderr.contains("serve.toml: metrics: "), "{}", ended.stderr);
}

#[test]
fn watch_exports_sums_and_causes_of_a_transfer() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address");
    let mut sender = TcpStream::connect(addr).expect("connected");
    let (mut receiver, _) = listener.accept().expect("accepted");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) && sender.write_all(&[7; 16_000]).is_ok() {
                clock::sleep_until(clock::monotonic_ns() + 5_000_000);
            }
            let _ = sender.shutdown(std::net::Shutdown::Both);
        });
        scope.spawn(move || std::io::copy(&mut receiver, &mut std::io::sink()));
        let port = addr.port().to_string();
        let mut command = landspeed();
        let watch = ["watch", "--plain", "--port", &port, "--interval", "200ms", "--metrics", "127.0.0.1:0"];
        let watch = Process::start(command.args(watch));
        let mut found = None;
        until(TIMEOUT_S, "the address of the metrics", || {
            found = metrics_address(&watch.stderr());
            found.is_some()
        });
        let addr = found.expect("just found");
        let text = scrape_until(addr, "the transfer in the metrics", |text| {
            let positive = |sample: &str| value(text, sample).is_some_and(|value| value > 0.0);
            positive("landspeed_watch_acked_bytes_total")
                && positive("landspeed_watch_received_bytes_total")
                && positive("landspeed_watch_goodput_bytes_per_second{role=\"sender\"}")
                && text.lines().any(|line| {
                    line.starts_with("landspeed_watch_cause_seconds_total{")
                        && !line.ends_with(" 0")
                        && !line.ends_with(" 0.0")
                })
        });
        // Both ends are sockets of this host.
        assert_eq!(value(&text, "landspeed_watch_connections"), Some(2.0), "{text}");
        let states: Vec<f64> = text
            .lines()
            .filter_map(|line| line.strip_prefix("landspeed_watch_state_ratio{")?.split_once("} ")?.1.parse().ok())
            .collect();
        assert!(states.len() == 10 && (states.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{states:?}");
        assert!(!text.contains("landspeed_watch_kernel_drops_total"), "not counted without --tracepoints");
        assert!(value(&text, "landspeed_watch_unavailable{what=\"tracepoints\"}").is_some(), "{text}");
        assert_clean(&text);
        watch.signal("INT");
        assert_eq!(watch.end(TIMEOUT_S).code, 0);
    });
}

#[test]
fn prometheus_scrapes_a_server() {
    let prometheus = program_or_skip!("prometheus");
    let (_server, addr) = serve(&[]);
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: landspeed, static_configs: [{{targets: ['{addr}']}}]}}]\n"
    );
    std::fs::write(&config, text).expect("written");
    let web = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let mut command = Command::new(prometheus);
    command.arg(format!("--config.file={}", config.display()));
    command.arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()));
    command.arg(format!("--web.listen-address={web}")).stdin(Stdio::null());
    let mut process = Process::start(command);
    let query = |expression: &str| -> Option<Value> {
        let body = get(web, &format!("/api/v1/query?query={expression}"), "application/json");
        let answer: Value = serde_json::from_str(&body).ok()?;
        answer["data"]["result"].get(0).cloned()
    };
    let mut found: [Option<Value>; 3] = [None, None, None];
    // Prometheus waits 5 s before it scrapes its first targets. A scrape that times out on a busy machine is repeated.
    until(TIMEOUT_S, "Prometheus to scrape", || {
        assert!(!process.has_ended(), "{}", process.stderr());
        found = ["up", "landspeed_serve_tests_limit", "landspeed_build_info"].map(&query);
        found.iter().all(Option::is_some) && found[0].as_ref().is_some_and(|up| up["value"][1] == "1")
    });
    let [_, limit, build] = found.map(|sample| sample.expect("just found"));
    assert_eq!(limit["value"][1], "128");
    assert_eq!((&build["metric"]["command"], &build["metric"]["job"]), (&"serve".into(), &"landspeed".into()));
    // The type and the unit come with the OpenMetrics text, which Prometheus asks for.
    let body = get(web, "/api/v1/metadata?metric=landspeed_serve_received_bytes", "application/json");
    let metadata: Value = serde_json::from_str(&body).expect("JSON");
    let metadata = &metadata["data"]["landspeed_serve_received_bytes"][0];
    assert_eq!((&metadata["type"], &metadata["unit"]), (&"counter".into(), &"bytes".into()), "{body}");
}

#[test]
fn queries_of_the_dashboard_are_valid() {
    let promtool = program_or_skip!("promtool");
    let dashboard = include_str!("../../../packaging/grafana/landspeed.json");
    let dashboard: Value = serde_json::from_str(dashboard).expect("JSON");
    let panels = list(&dashboard["panels"]);
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let queries: Vec<String> =
        targets.map(|target| target["expr"].as_str().expect("a query").replace("$__rate_interval", "5m")).collect();
    assert!(queries.len() > 30, "{queries:?}");
    // promtool checks queries as those of recording rules.
    let rules: Vec<Value> =
        queries.iter().enumerate().map(|(n, expr)| json!({"record": format!("q:{n}"), "expr": expr})).collect();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("queries.yml");
    let text = json!({"groups": [{"name": "dashboard", "rules": rules}]}).to_string();
    std::fs::write(&path, text).expect("written");
    let ran = Command::new(promtool).args(["check", "rules"]).arg(&path).output().expect("promtool runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn alert_rules_fire_when_they_should() {
    let promtool = program_or_skip!("promtool");
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/prometheus");
    for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]] {
        let ran = Command::new(&promtool).args(arguments).current_dir(&rules).output().expect("promtool runs");
        let said = [ran.stdout, ran.stderr].concat();
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said));
    }
    let [alerts, tests] = ["alerts.yml", "alerts_test.yml"].map(|name| std::fs::read_to_string(rules.join(name)));
    let tests = tests.expect("the tests");
    for alert in alerts.expect("the rules").lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        let fires = tests
            .split("- eval_time:")
            .skip(1)
            .any(|test| test.contains(&format!("alertname: {alert}\n")) && test.contains("exp_alerts:"));
        assert!(fires, "no test in which {alert} fires");
        assert!(tests.contains(&format!("alertname: {alert}}}")), "no test in which {alert} does not fire");
    }
}
