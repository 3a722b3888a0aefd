//! Exports the runs of a sweep as an Indexed Job of Kubernetes (`batch/v1`). All pods mount the volume with the
//! sweep's directory.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::bundle::Bundle;
use crate::error::Error;
use crate::lab::Lab;
use crate::session::{Session, Work};
use crate::tasks::{WORKER_MEMORY_BYTES, batches, kernels, lines};

/// Mount point of the volume in a pod.
const MOUNT: &str = "/sweep";
/// Default number of concurrent pods.
const DEFAULT_PARALLEL: usize = 8;
/// Maximum number of runs in a manifest.
const MAX_RUNS: usize = 100_000;
/// Retries per index (`backoffLimitPerIndex`).
const RETRIES: u32 = 2;
/// Maximum length of a job name: pod names are longer, and labels have at most 63 characters.
const MAX_NAME_LEN: usize = 40;

/// Options of the export.
#[derive(Debug, Clone)]
pub struct Options {
    /// Container image of the workers.
    pub image: String,
    /// PersistentVolumeClaim that holds the sweep's directory.
    pub claim: String,
    /// Maximum number of concurrent pods.
    pub jobs: Option<u16>,
    /// Directory of the lab's kernels.
    pub cache: Option<PathBuf>,
}

/// An exported sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The manifest, JSON.
    pub manifest: String,
    /// Number of runs.
    pub runs: usize,
    /// Number of pods that make them.
    pub pods: usize,
}

/// Prepares the directory for workers, and returns the manifest.
pub fn export(session: &Session, lab: &Lab, options: &Options) -> Result<Exported, Error> {
    let setup = &session.setup;
    let mut runs = Vec::new();
    while let Work::Run(assigned) = session.try_next() {
        runs.push((assigned.index, setup.cells[assigned.entry.number].wall_s));
        // A plan without a number of blocks has no last run.
        if runs.len() >= MAX_RUNS {
            break;
        }
    }
    if runs.is_empty() {
        return Err(Error::NothingToExport);
    }
    let directory = setup.directory.absolute()?;
    let bundle = Bundle::in_directory(&directory, &lab.program);
    bundle.stage(&lab.program, &kernels(setup, options.cache.as_deref())?)?;
    session.publish()?;
    let parallel = options.jobs.map_or(DEFAULT_PARALLEL, usize::from);
    let tasks = batches(&runs, parallel);
    setup.directory.write("kubernetes.tasks", lines(&tasks).as_bytes())?;
    let program = bundle.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let program = format!("{MOUNT}/bundle/{program}");
    let name = job_name(&setup.plan.name);
    let manifest = document(&name, options, &program, (tasks.len(), parallel), setup.memory_bytes());
    let mut manifest = serde_json::to_string_pretty(&manifest).map_err(Error::encode("the manifest"))?;
    manifest.push('\n');
    Ok(Exported { manifest, runs: runs.len(), pods: tasks.len() })
}

fn document(name: &str, options: &Options, program: &str, (tasks, parallel): (usize, usize), guest: u64) -> Value {
    // The guest's memory is a file in /dev/shm, which counts towards the pod's memory.
    let memory = mebibytes(guest + WORKER_MEMORY_BYTES);
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
                        "image": options.image,
                        "command": [program, "sweep", "worker", MOUNT],
                        // JOB_COMPLETION_INDEX selects the line of the task file.
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
                        { "name": "sweep", "persistentVolumeClaim": { "claimName": options.claim } },
                        { "name": "memory", "emptyDir": { "medium": "Memory", "sizeLimit": mebibytes(guest) } },
                    ],
                },
            },
        },
    })
}

/// Formats a Kubernetes memory quantity in MiB, rounded up.
fn mebibytes(bytes: u64) -> String {
    format!("{}Mi", bytes.div_ceil(1 << 20).max(64))
}

/// Returns a valid Kubernetes name (RFC 1123): lower-case letters, digits and hyphens.
fn job_name(plan: &str) -> String {
    let mut name = String::from("landspeed");
    for part in plan.to_lowercase().split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()) {
        name.push('-');
        name.push_str(part);
    }
    name.truncate(MAX_NAME_LEN);
    name.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_names_are_valid_dns_labels() {
        assert_eq!(job_name("Buffer curve, 15 seeds"), "landspeed-buffer-curve-15-seeds");
        assert_eq!(job_name("äöü"), "landspeed");
        assert!(job_name(&"x".repeat(100)).len() <= MAX_NAME_LEN);
    }

    #[test]
    fn quantities_are_rounded_up() {
        assert_eq!(mebibytes((100 << 20) + 1), "101Mi");
        assert_eq!(mebibytes(0), "64Mi");
    }
}
