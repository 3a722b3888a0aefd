//! The runs of a sweep as an Indexed Job of Kubernetes (`batch/v1`). The sweep's directory is on a volume that all its pods mount.

use std::path::Path;

use landspeed_units::Bytes;
use serde_json::{Value, json};

use super::session::Session;
use super::slurm::array::batches;

/// Where the volume is mounted in a pod.
const MOUNT: &str = "/sweep";
/// Memory of a worker beside its guest, bytes.
const BESIDE_GUEST: u64 = 256 << 20;
/// How often a pod of one index may fail.
const RETRIES: u32 = 2;
/// Longest name of a job: names of its pods are longer, and a label has 63 characters.
const LONGEST_NAME: usize = 40;

/// Options of the export.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Print a manifest for another system: the runs become an Indexed Job
    #[arg(long, value_enum, value_name = "SYSTEM", conflicts_with_all = ["dry_run", "json", "report"])]
    pub export: Option<System>,
    /// Container image of the workers: any that mounts the volume, for landspeed is one static binary
    #[arg(long, value_name = "IMAGE", default_value = "busybox:stable", requires = "export")]
    pub image: String,
    /// PersistentVolumeClaim that holds the sweep's directory
    #[arg(long, value_name = "NAME", default_value = "landspeed-sweep", requires = "export")]
    pub claim: String,
}

/// Systems that a sweep can be exported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum System {
    /// An Indexed Job (batch/v1) as JSON, which kubectl reads as it reads YAML
    Kubernetes,
}

/// The manifest for tasks of these runs, and which runs each task makes.
pub fn manifest(session: &Session, args: &Args, program: &Path, jobs: Option<u16>, runs: &[usize]) -> (Value, Vec<Vec<usize>>) {
    let setup = &session.setup;
    let seconds = |index: &usize| session.entry(*index).map_or(1.0, |entry| setup.cells[entry.number].wall_s);
    let runs: Vec<(usize, f64)> = runs.iter().map(|index| (*index, seconds(index))).collect();
    let parallel = jobs.map_or(8, usize::from);
    let tasks = batches(&runs, parallel);
    let guest = setup.cells.iter().map(|cell| cell.memory_bytes).max().unwrap_or(0);
    let name = job_name(&setup.plan.name);
    let program = format!("{MOUNT}/bundle/{}", program.file_name().unwrap_or_default().to_string_lossy());
    let manifest = document(&name, args, &program, (tasks.len(), parallel), guest);
    (manifest, tasks)
}

fn document(name: &str, args: &Args, program: &str, (tasks, parallel): (usize, usize), guest: u64) -> Value {
    // The guest's memory is a file in /dev/shm, which counts as the pod's memory.
    let memory = mebibytes(guest + BESIDE_GUEST);
    let labels = json!({ "app.kubernetes.io/name": "landspeed", "app.kubernetes.io/instance": name });
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "completionMode": "Indexed",
            "completions": tasks,
            "parallelism": parallel.min(tasks),
            "backoffLimitPerIndex": RETRIES,
            "maxFailedIndexes": tasks,
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": false,
                    "enableServiceLinks": false,
                    "containers": [{
                        "name": "worker",
                        "image": args.image,
                        "command": [program, "sweep", "worker", MOUNT],
                        "args": [
                            "--tasks", format!("{MOUNT}/kubernetes.tasks"), "--cache", format!("{MOUNT}/bundle/kernels"),
                        ],
                        "env": [
                            { "name": "LANDSPEED_ARCHIVE", "value": "off" },
                            { "name": "NODE_NAME", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } },
                        ],
                        "resources": {
                            "requests": { "cpu": "1", "memory": memory },
                            "limits": { "memory": memory },
                        },
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "capabilities": { "drop": ["ALL"] },
                        },
                        "volumeMounts": [
                            { "name": "sweep", "mountPath": MOUNT },
                            { "name": "memory", "mountPath": "/dev/shm" },
                        ],
                    }],
                    "volumes": [
                        { "name": "sweep", "persistentVolumeClaim": { "claimName": args.claim } },
                        { "name": "memory", "emptyDir": { "medium": "Memory", "sizeLimit": mebibytes(guest) } },
                    ],
                },
            },
        },
    })
}

/// A quantity of Kubernetes, rounded up.
fn mebibytes(bytes: u64) -> String {
    format!("{}Mi", Bytes::new(bytes).get().div_ceil(1 << 20).max(64))
}

/// A name of RFC 1123: lower case letters, digits and hyphens.
fn job_name(plan: &str) -> String {
    let mut name = String::from("landspeed");
    for part in plan.to_lowercase().split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()) {
        name.push('-');
        name.push_str(part);
    }
    name.truncate(LONGEST_NAME);
    name.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_a_name_that_dns_takes() {
        assert_eq!(job_name("Buffer curve, 15 seeds"), "landspeed-buffer-curve-15-seeds");
        assert_eq!(job_name("äöü"), "landspeed");
        assert!(job_name(&"x".repeat(100)).len() <= LONGEST_NAME);
    }

    #[test]
    fn quantities_are_rounded_up() {
        assert_eq!(mebibytes((100 << 20) + 1), "101Mi");
        assert_eq!(mebibytes(0), "64Mi");
    }
}
