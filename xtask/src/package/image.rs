//! The container image: the program alone, with an account, as an archive of the OCI image layout (image-spec 1.0). No daemon and no base image:
//! one layer, three JSON documents.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::build::{Build, SUMMARY, VERSION, format_date, output, sha256};
use super::sbom;
use super::stage::Stage;

/// User and group of the image: no account of a host has it.
const ID: u32 = 65532;

/// A blob, as another one refers to it.
struct Blob {
    digest: String,
    size: usize,
}

impl Blob {
    fn descriptor(&self, media_type: &str) -> Value {
        json!({ "mediaType": format!("application/vnd.oci.image.{media_type}"), "digest": self.digest, "size": self.size })
    }
}

/// Builds the image.
pub fn build(build: &Build<'_>) -> Result<PathBuf> {
    let root = Stage::empty(build, "image")?;
    root.copy(&build.root.join(&build.scratch).join("landspeed"), "usr/bin/landspeed")?;
    root.copy(&build.root.join("packaging/serve.toml"), "etc/landspeed/serve.toml")?;
    root.write(
        "etc/passwd",
        format!("root:x:0:0:root:/:/sbin/nologin\nlandspeed:x:{ID}:{ID}:landspeed:/:/sbin/nologin\n"),
    )?;
    root.write("etc/group", format!("root:x:0:\nlandspeed:x:{ID}:\n"))?;
    for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
        root.copy(&build.root.join(file), &format!("usr/share/licenses/landspeed/{file}"))?;
    }
    root.write("usr/share/licenses/landspeed/third-party.txt", sbom::notices(build)?)?;
    root.finish(|below| below.ends_with("bin/landspeed"))?;
    let scratch = build.root.join(&build.scratch);
    let tar = scratch.join("layer.tar");
    root.tar(".", &tar)?;
    let plain = std::fs::read(&tar).context("cannot read the layer")?;
    let diff = format!("sha256:{}", sha256(&plain));
    output(Command::new("gzip").args([if build.fast { "-1" } else { "-9" }, "-n"]).arg(&tar))?;
    let layer = std::fs::read(tar.with_extension("tar.gz")).context("cannot read the layer")?;

    let created = format_date(build.epoch, "%Y-%m-%dT%H:%M:%SZ")?;
    let layout = Stage::empty(build, "layout")?;
    let blob = |bytes: &[u8]| -> Result<Blob> {
        let sum = sha256(bytes);
        layout.write(&format!("blobs/sha256/{sum}"), bytes)?;
        Ok(Blob { digest: format!("sha256:{sum}"), size: bytes.len() })
    };
    let layer = blob(&layer)?;
    let config = json!({
        "created": created,
        "architecture": build.machine.debian,
        "os": "linux",
        "config": {
            "User": format!("{ID}:{ID}"),
            "ExposedPorts": { "5210/tcp": {}, "5210/udp": {} },
            // What a container keeps is gone with it.
            "Env": ["PATH=/usr/bin", "LANDSPEED_ARCHIVE=off"],
            "Entrypoint": ["/usr/bin/landspeed"],
            "Cmd": ["serve", "--config", "/etc/landspeed/serve.toml"],
            "WorkingDir": "/",
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "landspeed",
                "org.opencontainers.image.description": SUMMARY,
                "org.opencontainers.image.version": VERSION,
                "org.opencontainers.image.licenses": "Apache-2.0 OR MIT",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [diff] },
        "history": [{ "created": created, "created_by": "cargo xtask package oci" }],
    });
    let config = blob(config.to_string().as_bytes())?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config.descriptor("config.v1+json"),
        "layers": [layer.descriptor("layer.v1.tar+gzip")],
    });
    let mut manifest = blob(manifest.to_string().as_bytes())?.descriptor("manifest.v1+json");
    manifest["platform"] = json!({ "architecture": build.machine.debian, "os": "linux" });
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": format!("landspeed:{VERSION}") });
    let index = json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest] });
    layout.write("index.json", index.to_string())?;
    layout.write("oci-layout", json!({ "imageLayoutVersion": "1.0.0" }).to_string())?;
    layout.finish(|_| false)?;
    let archive = scratch.join(format!("landspeed-{VERSION}-{}.oci.tar", build.machine.debian));
    layout.tar(".", &archive)?;
    Ok(archive)
}
