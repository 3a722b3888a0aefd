//! iperf3 authentication (users, passwords, RSA keys), with iperf3 on either side.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use landspeed_iperf3::auth::PublicKey;
use landspeed_testkit::iperf3::{Iperf3, programs};
use landspeed_testkit::process::{Process, until};
use landspeed_testkit::skip;
use serde_json::Value;

use crate::iperf3::parties::{TIMEOUT_S, iperf3_server, landspeed_client_with, landspeed_server, wait_for_listener};
use landspeed_testkit::process::run_concurrently;

/// Key pair and user file, created with `openssl` as described in iperf3's manual.
struct Keys {
    _place: tempfile::TempDir,
    public: PathBuf,
    private: PathBuf,
    users: PathBuf,
}

const USER: &str = "mario";
const PASSWORD: &str = "rossi";
/// SHA-256 of `{mario}rossi`, the example of iperf3's manual.
const DIGEST: &str = "bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b";

impl Keys {
    fn make(traditional: bool) -> Option<Self> {
        let place = tempfile::tempdir().expect("a directory");
        let [public, private, users] = ["public.pem", "private.pem", "users.csv"].map(|name| place.path().join(name));
        let openssl = |arguments: &[&Path]| Command::new("openssl").args(arguments).output().ok();
        let plain = place.path().join("key.pem");
        openssl(&["genrsa".as_ref(), "-out".as_ref(), &plain, "2048".as_ref()])?;
        let form: &[&str] = if traditional { &["-traditional"] } else { &[] };
        let mut arguments: Vec<&Path> = vec!["rsa".as_ref(), "-in".as_ref(), &plain, "-out".as_ref(), &private];
        arguments.extend(form.iter().map(Path::new));
        assert!(openssl(&arguments)?.status.success());
        openssl(&["rsa".as_ref(), "-in".as_ref(), &plain, "-pubout".as_ref(), "-out".as_ref(), &public])?;
        let digest = openssl_digest();
        assert_eq!(digest, DIGEST, "the digest of the manual's example");
        std::fs::write(&users, format!("# name,digest\nluigi,00\n{USER},{digest}\n")).expect("a user file");
        Some(Self { _place: place, public, private, users })
    }

    fn server_options(&self) -> Vec<String> {
        let text = |path: &Path| path.to_str().expect("a plain path").to_owned();
        let (private, users) = (text(&self.private), text(&self.users));
        vec!["--rsa-private-key-path".to_owned(), private, "--authorized-users-path".to_owned(), users]
    }
}

fn openssl_digest() -> String {
    let script = format!("printf '{{{USER}}}{PASSWORD}' | openssl dgst -sha256 -r");
    let out = Command::new("sh").args(["-c", &script]).output().expect("a shell");
    String::from_utf8_lossy(&out.stdout).split(' ').next().unwrap_or_default().to_owned()
}

fn iperf3_client(iperf3: &Iperf3, port: u16, keys: &Keys, password: &str) -> (i32, String) {
    let mut command = Command::new(&iperf3.path);
    command.args(["-c", "127.0.0.1", "-p", &port.to_string(), "-n", "1M", "--username", USER]);
    command.arg("--rsa-public-key-path").arg(&keys.public).env("IPERF3_PASSWORD", password);
    let ended = Process::start(command).end(TIMEOUT_S);
    (ended.code, ended.stdout + &ended.stderr)
}

/// The iperf3 releases built with OpenSSL.
fn programs_with_authentication() -> Vec<Iperf3> {
    programs().into_iter().filter(|iperf3| iperf3.supports_flag("--username")).collect()
}

#[test]
fn iperf3_clients_authenticate_to_our_server() {
    let programs = programs_with_authentication();
    if programs.is_empty() {
        skip!("no iperf3 here; `cargo xtask iperf3` downloads some");
    }
    for (pkcs1, traditional) in [(true, true), (false, false)] {
        let Some(keys) = Keys::make(traditional) else { skip!("no openssl here to make keys with") };
        let mut options = keys.server_options();
        options.extend(pkcs1.then(|| "--use-pkcs1-padding".to_owned()));
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let (server, target) = landspeed_server(&options);
        // OAEP padding was added in 3.17; a current client has no other. Before 3.7 the password is read from a
        // terminal only.
        let padding_as_this = |p: &&Iperf3| p.version >= (3, 7) && pkcs1 == (p.version < (3, 17));
        run_concurrently(programs.iter().filter(padding_as_this), |iperf3| {
            let said = iperf3_client(iperf3, target.port(), &keys, PASSWORD);
            assert_eq!(said.0, 0, "{iperf3}: {}\n{}", said.1, server.stdout());
            let said = iperf3_client(iperf3, target.port(), &keys, "bowser");
            assert!(said.0 != 0 && said.1.contains("authorization failed"), "{iperf3}: {}", said.1);
        });
        let anybody = programs.iter().any(|p| padding_as_this(&p));
        assert_eq!(server.stdout().contains("for mario"), anybody, "{}", server.stdout());
        // A client without a user name.
        let (code, document) = landspeed_client_with(&target.to_string(), "-n 1M", &[]);
        assert_eq!((code, &document["errors"][0]["code"]), (2, &Value::from("iperf3-error")));
    }
}

#[test]
fn a_used_token_is_refused_after_a_restart() {
    let Some(keys) = Keys::make(false) else { skip!("no openssl here to make keys with") };
    let options = keys.server_options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let public = PublicKey::open(&keys.public, landspeed_sys::trust::Policy::Refuse).expect("a public key");
    let token = || public.token(USER, PASSWORD, false).expect("a short name");
    let admitted = |addr: SocketAddr, token: &str| {
        let mut stream = TcpStream::connect(addr).expect("a connection");
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).expect("a timeout");
        let mut cookie = [b'a'; 37];
        cookie[36] = 0;
        cookie[..8].copy_from_slice(format!("{:08}", stream.local_addr().expect("bound").port()).as_bytes());
        let wanted = serde_json::json!({"tcp": true, "omit": 0, "time": 1, "num": 0, "blockcount": 0, "parallel": 1,
            "len": 1000, "client_version": "3.17", "authtoken": token});
        let text = wanted.to_string();
        stream.write_all(&cookie).expect("sent");
        let mut answer = [0; 2];
        stream.read_exact(&mut answer[..1]).expect("the question");
        stream.write_all(&[&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()).expect("sent");
        stream.read_exact(&mut answer[1..]).expect("an answer");
        assert!(matches!(answer[1], 10 | 0xFE), "{answer:?}");
        answer[1] == 10
    };
    let (mut server, addr) = landspeed_server(&options);
    let overheard = token();
    assert!(admitted(addr, &overheard), "{}", server.stdout());
    assert!(!admitted(addr, &overheard), "used twice");
    server.kill();
    let (server, addr) = landspeed_server(&options);
    assert!(!admitted(addr, &overheard), "used with the server before");
    until(TIMEOUT_S, "the reason in the log", || server.stdout().contains("older than this server"));
    assert!(admitted(addr, &token()), "{}", server.stdout());
}

#[test]
fn our_client_authenticates_to_iperf3_servers() {
    let programs = programs_with_authentication();
    if programs.is_empty() {
        skip!("no iperf3 here; `cargo xtask iperf3` downloads some");
    }
    let Some(keys) = Keys::make(false) else { skip!("no openssl here to make keys with") };
    let options = keys.server_options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    run_concurrently(programs, |iperf3| {
        let (server, target) = iperf3_server(&iperf3, &options);
        let padding = if iperf3.version < (3, 17) { "--use-pkcs1-padding" } else { "" };
        let public = keys.public.display();
        let arguments = format!("-n 1M --username {USER} --rsa-public-key-path {public} {padding}");
        let (code, document) = landspeed_client_with(&target, &arguments, &[("IPERF3_PASSWORD", PASSWORD)]);
        assert_eq!(code, 0, "{iperf3}: {:#}", document["errors"]);
        wait_for_listener(&server, 2);
        let (code, document) = landspeed_client_with(&target, &arguments, &[("IPERF3_PASSWORD", "bowser")]);
        assert_eq!(code, 2, "{iperf3}: {:#}", document["errors"]);
        assert!(document["errors"].to_string().contains("authorization"), "{iperf3}: {}", document["errors"]);
    });
}

#[test]
fn missing_password_or_key_is_an_error() {
    let Some(keys) = Keys::make(false) else { skip!("no openssl here to make keys with") };
    for (key, word) in [(&keys.public, "IPERF3_PASSWORD"), (&keys.users, "RSA public key")] {
        let arguments = format!("--username {USER} --rsa-public-key-path {}", key.display());
        let (code, document) = landspeed_client_with("127.0.0.1:1", &arguments, &[]);
        assert_eq!((code, &document["errors"][0]["code"]), (2, &Value::from("bad-credentials")));
        assert!(document["errors"][0]["message"].to_string().contains(word), "{}", document["errors"]);
    }
}
