//! Conditions on the command line: the query vocabulary as options.

use landspeed_archive::Query;

/// Options that select records.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Filter {
    /// Conditions as one text, as in archive:QUERY
    #[arg(value_name = "QUERY")]
    query: Option<String>,
    /// Client or server (* and ? match any text)
    #[arg(long, value_name = "NAME", help_heading = "Conditions")]
    host: Vec<String>,
    /// Server as it was given, or `WEST to EAST` in a lab
    #[arg(long, visible_alias = "path", value_name = "NAME", help_heading = "Conditions")]
    target: Vec<String>,
    /// Kernel of the sender, or its beginning: 6.12
    #[arg(long, value_name = "RELEASE", help_heading = "Conditions")]
    kernel: Vec<String>,
    /// Parameter of the test, or fact of a host: congestion=bbr, nic.mtu_bytes=9000, net.core.rmem_max=…
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Conditions")]
    setting: Vec<String>,
    /// What limited it: receiver-window, loss, …
    #[arg(long, value_name = "CAUSE", help_heading = "Conditions")]
    verdict: Vec<String>,
    /// Figure: 'goodput<5G', 'rtt_p50>20ms', 'loss>=0.1%'
    #[arg(long, value_name = "CONDITION", help_heading = "Conditions")]
    metric: Vec<String>,
    /// Started on this date or later (UTC)
    #[arg(long, value_name = "DATE", help_heading = "Conditions")]
    since: Option<String>,
    /// Started before this date (UTC)
    #[arg(long, value_name = "DATE", help_heading = "Conditions")]
    until: Option<String>,
    /// Started in this time before now: 30d, 12h
    #[arg(long, value_name = "TIME", help_heading = "Conditions")]
    last: Option<String>,
    /// Tag of the document
    #[arg(long, value_name = "TAG", help_heading = "Conditions")]
    tag: Vec<String>,
    /// Kind of document: run, lab, sweep, tuneup, watch, audit, comparison, iperf3, nuttcp, flent, perfsonar
    #[arg(long, value_name = "KIND", help_heading = "Conditions")]
    kind: Vec<String>,
    /// complete, partial, invalid or failed
    #[arg(long, value_name = "STATUS", help_heading = "Conditions")]
    status: Vec<String>,
    /// Title, name of a scenario or a plan
    #[arg(long, value_name = "TITLE", help_heading = "Conditions")]
    title: Vec<String>,
    /// Flow of a lab
    #[arg(long, value_name = "NAME", help_heading = "Conditions")]
    flow: Vec<String>,
}

impl Filter {
    /// Returns the query that the options describe.
    pub fn query(&self) -> anyhow::Result<Query> {
        let text = self.query.as_deref().unwrap_or_default();
        let mut query: Query = text.strip_prefix("archive:").unwrap_or(text).parse()?;
        let lists = [
            ("host", &self.host),
            ("target", &self.target),
            ("kernel", &self.kernel),
            ("setting", &self.setting),
            ("verdict", &self.verdict),
            ("tag", &self.tag),
            ("kind", &self.kind),
            ("status", &self.status),
            ("title", &self.title),
            ("flow", &self.flow),
        ];
        for (key, values) in lists {
            for value in values {
                query.set(key, value)?;
            }
        }
        for (key, value) in [("since", &self.since), ("until", &self.until), ("last", &self.last)] {
            if let Some(value) = value {
                query.set(key, value)?;
            }
        }
        for condition in &self.metric {
            query.figure(condition)?;
        }
        Ok(query)
    }
}
