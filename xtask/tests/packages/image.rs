//! The container image.

use std::path::Path;
use std::process::Command;

use landspeed_testkit::process::{Process, until};
use landspeed_testkit::{or_skip, skip};
use serde_json::Value;

use super::{Program, require, succeed};

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
}

/// The blob that a descriptor names, after checking its size and digest.
fn blob(layout: &Path, descriptor: &Value) -> std::path::PathBuf {
    let digest = descriptor["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:")).expect("a digest");
    let path = layout.join("blobs/sha256").join(digest);
    assert_eq!(descriptor["size"].as_u64(), path.metadata().ok().map(|file| file.len()), "{descriptor}");
    let sum = succeed(Command::new("sha256sum").arg(&path)).stdout;
    assert!(sum.starts_with(digest.as_bytes()), "{descriptor}");
    path
}

fn words(list: &Value) -> Vec<String> {
    list.as_array().expect("a list").iter().map(|word| word.as_str().expect("text").to_owned()).collect()
}

#[test]
fn image_serves_as_its_user_with_its_entrypoint() {
    let program = or_skip!(Program::new());
    or_skip!(require(&["unshare", "tar", "gzip", "sha256sum"]));
    let place = tempfile::tempdir().expect("a temporary directory");
    let archive = program.build_twice("oci", place.path());
    let (layout, root) = (place.path().join("layout"), place.path().join("root"));
    std::fs::create_dir(&layout).and_then(|()| std::fs::create_dir_all(root.join("proc"))).expect("directories");
    succeed(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&layout));
    assert_eq!(json(&layout.join("oci-layout"))["imageLayoutVersion"], "1.0.0");
    let manifest = json(&blob(&layout, &json(&layout.join("index.json"))["manifests"][0]));
    let config = json(&blob(&layout, &manifest["config"]));
    let layer = blob(&layout, &manifest["layers"][0]);
    succeed(Command::new("tar").arg("-xzf").arg(&layer).arg("-C").arg(&root));
    let plain = Command::new("sh").args(["-c", "gzip -dc \"$1\" | sha256sum", "sh"]).arg(&layer).output();
    let plain = String::from_utf8_lossy(&plain.expect("sh runs").stdout).into_owned();
    assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", plain.split(' ').next().expect("a sum")));

    let config = &config["config"];
    let user = config["User"].as_str().expect("a user");
    let (uid, gid) = user.split_once(':').expect("user and group");
    assert!(uid != "0" && gid != "0", "{user}");
    let contained = |arguments: &[String]| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        unshare.args([&format!("--map-user={uid}"), &format!("--map-group={gid}")]);
        unshare.arg(format!("--root={}", root.display())).arg("--").args(arguments);
        unshare.env_clear().envs(words(&config["Env"]).iter().filter_map(|pair| pair.split_once('=')));
        unshare
    };
    let entrypoint = words(&config["Entrypoint"]);
    let with = |arguments: &[&str]| {
        contained(&entrypoint.iter().cloned().chain(arguments.iter().map(ToString::to_string)).collect::<Vec<_>>())
    };
    let try_out = with(&["--version"]).output().expect("unshare runs");
    if !try_out.status.success() {
        skip!("no user namespace: {}", String::from_utf8_lossy(&try_out.stderr));
    }
    let command = words(&config["Cmd"]);
    let mut serve: Vec<&str> = command.iter().map(String::as_str).collect();
    // The host's network is shared: its port 5210 may be taken.
    serve.extend(["--listen", "127.0.0.1:0", "--no-iperf3"]);
    let mut server = Process::start(with(&serve));
    let address = server.address_in("listening on").to_string();
    let out = succeed(&mut with(&["run", &address, "-t", "1", "--json", "-"])).stdout;
    let document: Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(document["status"], "complete", "{document:#}");
    server.kill();
    let address = address.parse().expect("an address");
    until(10, "the server ends with its container", || {
        std::net::TcpStream::connect::<std::net::SocketAddr>(address).is_err()
    });
}
