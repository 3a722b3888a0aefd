//! Metrics of `serve --metrics`, `watch --metrics` and `mesh --metrics`: their names, help texts and values.

pub mod mesh;
pub mod serve;
pub mod watch;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, anyhow};
use landspeed_metrics::{Endpoint, RunningEndpoint, Samples};

/// Parses the address of an endpoint. It must have a host, so that no port opens on all addresses by mistake.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("`{text}` is not an address with a port; write 127.0.0.1:9210, or 0.0.0.0:9210 for all addresses")
    })
}

/// Opens the endpoint of `command`; it answers once it is started.
pub fn open(addr: SocketAddr, command: &'static str) -> anyhow::Result<Endpoint> {
    Endpoint::bind(addr, env!("CARGO_PKG_VERSION"), command).map_err(|error| match error.advice() {
        Some(advice) => anyhow!("{error}\n{advice}"),
        None => anyhow!("{error}"),
    })
}

/// Latest samples: written by the command, read by the endpoint. The lock is held only to exchange a pointer.
#[derive(Debug, Clone, Default)]
pub struct Latest(Arc<Mutex<Arc<Samples>>>);

impl Latest {
    /// Answers scrapers with the latest samples, and reports the address on standard error.
    pub fn serve(&self, endpoint: Endpoint) -> anyhow::Result<RunningEndpoint> {
        errln!("{}", announcement(&endpoint)?);
        let latest = self.clone();
        let collect = move |samples: &mut Samples| {
            let latest = Arc::clone(&latest.0.lock().unwrap_or_else(PoisonError::into_inner));
            samples.extend(&latest);
        };
        endpoint.start(collect).context("cannot start a thread for the metrics")
    }

    /// Makes `samples` those of the next scrape.
    pub fn replace(&self, samples: Samples) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(samples);
    }
}

/// Returns the line that reports the address of the metrics.
pub fn announcement(endpoint: &Endpoint) -> anyhow::Result<String> {
    let addr = endpoint.local_addr().context("cannot read the address of the metrics")?;
    Ok(format!("landspeed: metrics on http://{addr}/metrics"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;
    use std::path::PathBuf;

    use landspeed_metrics::{Family, process_families};

    use super::*;

    fn root() -> PathBuf {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    fn read(path: &str) -> String {
        std::fs::read_to_string(root().join(path)).unwrap_or_else(|why| panic!("{path}: {why}"))
    }

    fn families() -> Vec<&'static Family> {
        [&process_families()[..], serve::FAMILIES, watch::FAMILIES, mesh::FAMILIES].concat()
    }

    /// Rows of the tables in docs/metrics.md.
    fn table(families: &[&Family]) -> String {
        let mut table = "| metric | type | labels | |\n|---|---|---|---|\n".to_owned();
        for family in families {
            let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
            let (name, kind, labels) = (family.name(), family.kind.name(), labels.join(", "));
            let _ = writeln!(table, "| `{name}` | {kind} | {labels} | {} |", family.help);
        }
        table
    }

    #[test]
    fn every_metric_is_documented() {
        let page = read("docs/metrics.md");
        for families in [&process_families()[..], serve::FAMILIES, watch::FAMILIES, mesh::FAMILIES] {
            let table = table(families);
            assert!(page.contains(&table), "docs/metrics.md lacks this table:\n{table}");
        }
    }

    #[test]
    fn names_follow_the_conventions() {
        let mut seen = BTreeSet::new();
        for family in families() {
            let name = family.name();
            let ours = name.starts_with("landspeed_") || name.starts_with("process_");
            let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            assert!(ours && plain, "{name}");
            assert!(!family.help.is_empty() && !family.help.ends_with('.'), "{name}: {}", family.help);
            assert!(seen.insert(name.clone()), "{name} exists twice");
        }
    }

    #[test]
    fn no_label_names_an_address_a_port_or_a_program() {
        for family in families() {
            for label in family.labels {
                let forbidden = ["peer", "address", "host", "port", "pid", "program", "user", "id", "flow", "cookie"];
                assert!(!forbidden.contains(label), "{}: {label}", family.name());
            }
        }
    }

    /// Names of landspeed's metrics in a text.
    fn names_in(text: &str) -> Vec<String> {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let ours = |word: &&str| {
            let prefixes = ["serve_", "watch_", "mesh_", "metrics_", "build_"];
            let is_ours = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
            word.starts_with("process_") || word.strip_prefix("landspeed_").is_some_and(is_ours)
        };
        words.filter(ours).map(ToOwned::to_owned).collect()
    }

    #[test]
    fn alerts_and_dashboard_use_only_metrics_that_exist() {
        let known: Vec<String> = families().iter().map(|family| family.name()).collect();
        for path in [
            "packaging/prometheus/alerts.yml",
            "packaging/prometheus/alerts_test.yml",
            "packaging/grafana/landspeed.json",
            "docs/metrics.md",
        ] {
            let used = names_in(&read(path));
            assert!(used.len() > 5, "{path} uses {used:?}");
            for name in used {
                assert!(known.contains(&name), "{path}: {name} does not exist");
            }
        }
    }

    #[test]
    fn alerts_name_causes_and_reasons_that_exist() {
        let alerts = read("packaging/prometheus/alerts.yml");
        let values = |label: &str| -> Vec<String> {
            let selectors = alerts.split(label).skip(1);
            let quoted =
                selectors.filter_map(|rest| rest.trim_start_matches('~').strip_prefix('"')?.split('"').next());
            quoted.flat_map(|list| list.split('|')).map(ToOwned::to_owned).collect()
        };
        let (causes, reasons) = (values("{cause="), values("{reason="));
        assert!(causes.len() > 3 && reasons.len() > 2, "{causes:?} {reasons:?}");
        for cause in causes {
            assert!(landspeed_model::Cause::from_name(&cause).is_some(), "{cause}");
        }
        for reason in reasons {
            let of_serve = landspeed_flow::server::Refusal::ALL.iter().any(|known| known.name() == reason);
            assert!(of_serve || mesh::REASONS.contains(&reason.as_str()), "{reason}");
        }
    }

    #[test]
    fn addresses_need_a_host_and_a_port() {
        assert_eq!(address("127.0.0.1:9210"), Ok(SocketAddr::from(([127, 0, 0, 1], 9210))));
        assert!(address("[::1]:0").is_ok());
        for text in ["9210", ":9210", "127.0.0.1", "localhost:9210", ""] {
            assert!(address(text).is_err_and(|why| why.contains("write 127.0.0.1:9210")), "{text}");
        }
    }
}
