//! Common programs, each with an injected fault: rsync over ssh, nginx and curl, iperf3.

use std::path::Path;
use std::process::{Command, Stdio};

use landspeed_testkit::netns::Namespace;
use landspeed_testkit::or_skip;
use landspeed_testkit::process::{Process, until};
use landspeed_testkit::wire::{LEFT as NEAR, RIGHT as FAR, Wire, WireDirection};
use serde_json::Value;

use crate::watch_causes::{RIGHT, TIMEOUT_S, slow_storage, tenth_core_cgroup, two_hosts, watch};

/// Paths of the programs; the error names one that is not installed.
fn installed<const N: usize>(programs: [&str; N]) -> Result<[String; N], String> {
    let mut paths = [const { String::new() }; N];
    for (path, program) in paths.iter_mut().zip(programs) {
        let script = format!("PATH=$PATH:/usr/sbin:/sbin command -v {program}");
        let found = Command::new("sh").args(["-c", &script]).output().map_err(|why| why.to_string())?;
        String::from_utf8_lossy(&found.stdout).trim().clone_into(path);
        if path.is_empty() {
            return Err(format!("{program} is not installed"));
        }
    }
    Ok(paths)
}

/// Starts a shell script in a namespace, with private mounts.
fn script(namespace: &Namespace, script: &str) -> Process {
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-ec", script]).stdin(Stdio::null());
    namespace.run(|| Process::start(command))
}

/// The flow with most bytes.
fn largest_flow(document: &Value) -> &Value {
    let flow = &document["flows"][0];
    assert!(flow.is_object(), "{document:#}");
    assert_ne!(flow["confidence"], "high", "{flow:#}");
    flow
}

fn wait_until_listening(namespace: &Namespace, port: u16) {
    let filter = format!("sport = :{port}");
    until(TIMEOUT_S, "a listener", || namespace.exec(["ss", "-Hltn", &filter]).contains("LISTEN"));
}

/// Creates a file of zeros.
fn create_zero_file(path: &Path, mebibytes: usize) {
    std::fs::write(path, vec![0; mebibytes << 20]).expect("a file");
}

#[test]
fn cpu_quota_of_rsync_over_ssh_is_named() {
    let [rsync, ssh, sshd, keygen] = or_skip!(installed(["rsync", "ssh", "sshd", "ssh-keygen"]));
    let (left, right, _link) = or_skip!(two_hosts());
    let group = or_skip!(tenth_core_cgroup());
    let scratch = tempfile::tempdir().expect("a directory");
    let at = scratch.path().display().to_string();
    create_zero_file(&scratch.path().join("data"), 2000);
    for key in ["host", "user"] {
        let made =
            Command::new(&keygen).args(["-q", "-t", "ed25519", "-N", "", "-f", &format!("{at}/{key}")]).status();
        assert!(made.is_ok_and(|status| status.success()));
    }
    let config = format!(
        "ListenAddress {RIGHT}\nPort 2222\nHostKey {at}/host\nAuthorizedKeysFile {at}/user.pub\nStrictModes no\nUsePAM \
         no\nPermitRootLogin yes\nPidFile none\n"
    );
    std::fs::write(scratch.path().join("sshd_config"), config).expect("a file");
    // The directory and the user that sshd requires exist for this process only.
    let server = format!(
        "mount -t tmpfs none /run; mkdir -m 755 /run/sshd; cp /etc/passwd {at}/passwd; grep -q ^sshd: {at}/passwd || echo \
         'sshd:x:65533:65534::/run/sshd:/bin/false' >> {at}/passwd; mount --bind {at}/passwd /etc/passwd; exec {sshd} -D -e -f \
         {at}/sshd_config"
    );
    let _server = script(&right, &server);
    wait_until_listening(&right, 2222);
    let client = format!(
        "echo $$ > {}/cgroup.procs; exec {rsync} -e '{ssh} -p 2222 -i {at}/user -o StrictHostKeyChecking=no -o \
         UserKnownHostsFile=/dev/null' --rsync-path={rsync} --inplace {at}/data root@{RIGHT}:{at}/copy",
        group.0.display()
    );
    let _client = script(&left, &client);
    let moves = || left.exec(["ss", "-Htni", "dport = :2222"]).contains("bytes_acked");
    until(TIMEOUT_S, "a connection", moves);
    let document = watch(&left, &["--port", "2222"]);
    let flow = largest_flow(&document);
    assert_eq!((&flow["cause"], &flow["command"]), (&"cpu-quota".into(), &"ssh".into()), "{flow:#}");
}

#[test]
fn slow_storage_of_nginx_is_named() {
    let [nginx, curl] = or_skip!(installed(["nginx", "curl"]));
    let (left, right, _link) = or_skip!(two_hosts());
    let scratch = tempfile::tempdir().expect("a directory");
    let (group, file) = or_skip!(slow_storage(scratch.path(), 4 << 20));
    let at = scratch.path().display().to_string();
    let config = format!(
        "daemon off; master_process off; user root; pid {at}/pid; error_log {at}/error;\nevents {{}}\nhttp {{ access_log off; \
         client_body_temp_path {at}; proxy_temp_path {at}; fastcgi_temp_path {at}; uwsgi_temp_path {at}; scgi_temp_path {at}; \
         sendfile on; server {{ listen {RIGHT}:8080; root {at}; }} }}\n"
    );
    std::fs::write(scratch.path().join("nginx.conf"), config).expect("a file");
    let server = format!(
        "sync {0}; dd of={0} oflag=nocache conv=notrunc,fdatasync count=0; echo $$ > {1}/cgroup.procs; exec {nginx} -c {at}/nginx.conf -e {at}/error",
        file.display(),
        group.0.display()
    );
    let _server = script(&right, &server);
    wait_until_listening(&right, 8080);
    let _client = script(&left, &format!("exec {curl} -s -o /dev/null http://{RIGHT}:8080/data"));
    let document = watch(&right, &["--port", "8080"]);
    let flow = largest_flow(&document);
    assert_eq!((&flow["cause"], &flow["command"]), (&"storage".into(), &"nginx".into()), "{flow:#}");
}

#[test]
fn rate_limited_curl_is_named() {
    let [nginx, curl] = or_skip!(installed(["nginx", "curl"]));
    let (left, right, _link) = or_skip!(two_hosts());
    let scratch = tempfile::tempdir().expect("a directory");
    let at = scratch.path().display().to_string();
    create_zero_file(&scratch.path().join("data"), 200);
    let config = format!(
        "daemon off; master_process off; user root; pid {at}/pid; error_log {at}/error;\nevents {{}}\nhttp {{ access_log off; \
         client_body_temp_path {at}; proxy_temp_path {at}; fastcgi_temp_path {at}; uwsgi_temp_path {at}; scgi_temp_path {at}; \
         sendfile on; server {{ listen {RIGHT}:8080; root {at}; }} }}\n"
    );
    std::fs::write(scratch.path().join("nginx.conf"), config).expect("a file");
    let _server = script(&right, &format!("exec {nginx} -c {at}/nginx.conf -e {at}/error"));
    wait_until_listening(&right, 8080);
    let _client = script(&left, &format!("exec {curl} -s --limit-rate 4M -o /dev/null http://{RIGHT}:8080/data"));
    let document = watch(&left, &["--port", "8080"]);
    let flow = largest_flow(&document);
    assert_eq!((&flow["cause"], &flow["command"]), (&"slow-reader".into(), &"curl".into()), "{flow:#}");
}

#[test]
fn loss_on_the_path_of_iperf3_is_named() {
    let [iperf3] = or_skip!(installed(["iperf3"]));
    let (left, right) = (or_skip!(Namespace::new("left")), or_skip!(Namespace::new("right")));
    // At 100 Mb/s bursts queue, RTT correlates with data in flight, and the local host's view cannot exclude a shallow buffer.
    let leg =
        WireDirection { delay_ns: 5_000_000, rate_bps: Some(1e9), queue_bytes: 1 << 20, ..WireDirection::default() };
    let _wire = or_skip!(Wire::between(&left, &right, [WireDirection { loss: 0.01, ..leg }, leg], 7));
    let _server = script(&right, &format!("exec {iperf3} -s -1 -B {FAR}"));
    wait_until_listening(&right, 5201);
    let _client = script(&left, &format!("exec {iperf3} -c {FAR} -B {NEAR} -t 30 -C reno"));
    let document = watch(&left, &[]);
    let flow = largest_flow(&document);
    assert_eq!((&flow["cause"], &flow["command"]), (&"network-loss".into(), &"iperf3".into()), "{flow:#}");
}
