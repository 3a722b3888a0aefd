//! Where the server of a tool runs.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::bench::child::run;
use crate::bench::net;

/// Address of a tool's server, and its network namespace.
#[derive(Debug, Clone)]
pub struct Place {
    host: Ipv4Addr,
    /// Name as `ip netns` lists it; `None` is the benchmark's namespace.
    namespace: Option<String>,
}

impl Default for Place {
    fn default() -> Self {
        Self { host: Ipv4Addr::LOCALHOST, namespace: None }
    }
}

impl Place {
    /// A server in another namespace, at `host` for clients in the benchmark's.
    pub fn in_namespace(name: &str, host: Ipv4Addr) -> Self {
        Self { host, namespace: Some(name.to_owned()) }
    }

    /// Address of the server.
    pub fn host(&self) -> String {
        self.host.to_string()
    }

    /// Returns a command that runs `program` where the server runs, pinned to `core` if given.
    pub fn server(&self, program: &Path, core: Option<usize>) -> Command {
        let mut words: Vec<String> = Vec::new();
        if let Some(name) = &self.namespace {
            words.push("nsenter".to_owned());
            words.push(format!("--net=/run/netns/{name}"));
        }
        if let Some(core) = core {
            words.extend(["taskset".to_owned(), "-c".to_owned(), core.to_string()]);
        }
        let Some((first, rest)) = words.split_first() else { return Command::new(program) };
        let mut command = Command::new(first);
        command.args(rest).arg(program);
        command
    }

    /// Whether a socket listens on TCP `port` where the server runs.
    pub fn is_listening(&self, port: u16) -> bool {
        let read = |file: &str| {
            let listed = run(self.server(Path::new("cat"), None).arg(file), Duration::from_secs(5));
            listed.map(|finished| finished.stdout).unwrap_or_default()
        };
        match self.namespace {
            None => net::is_listening(port),
            Some(_) => ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|file| net::lists_listener(&read(file), port)),
        }
    }
}
