use proptest::prelude::*;

use super::*;
use crate::host::answers::LinkAnswer;
use landspeed_model::Fact;

fn redactor(name: &str) -> Redactor {
    Redactor::new(name)
}

fn shown(text: &str) -> String {
    redactor("dtn7.lab.corp").text(text, Numbers::MayBeAddresses)
}

#[test]
fn identifying_values_get_a_placeholder() {
    let cases = [
        ("addr 10.1.2.3/16, gw 10.1.2.254.", "addr 198.18.0.1/16, gw 198.18.0.2."),
        ("inet6 2a02:120b::1f:1 fe80::42%eth0", "inet6 2001:db8:0::1 fe80::1%eth0"),
        ("link/ether ec:0d:9a:8f:11:02 brd ff:ff:ff:ff:ff:ff", "link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff"),
        ("01-ec-0d-9a-8f-11-02", "02-00-00-00-00-00-01"),
        ("/sys/class/net/enxec0d9a8f1102/mtu", "/sys/class/net/enx020000000001/mtu"),
        ("id 4c4c4544-0043-4a10-8056-b7c04f4e3232", "id 00000000-0000-0000-0000-000000000001"),
        ("/docker/0123456789abcdef0123456789abcdef", "/docker/00000000000000000000000000000001"),
        ("DTN7.lab.corp and dtn7, dtn72", "host.example and host, dtn72"),
    ];
    for (text, expected) in cases {
        let expected = expected.replace("2001:db8:0::1", "2001:db8::1");
        assert_eq!(shown(text), expected);
    }
}

#[test]
fn values_that_resemble_addresses_are_not_redacted() {
    let harmless = [
        "0::/user.slice",
        "12:cpu,cpuacct:/a",
        "mlx5_comp3@pci:0000:3b:00.0",
        "Linux 5.14.0-427.13.1.el9_4.x86_64",
        "4.18.0-553.8.1.2.el8",
        "00000000,ffffffff",
        "12:30:01 UTC 2026",
        "127.0.0.1 ::1 0.0.0.0 255.255.255.0",
        "1 2 3 4.5",
        "softnet 0000000a 00000001",
        "00:00:00:00:00:00",
    ];
    for text in harmless {
        assert_eq!(shown(text), text);
    }
}

#[test]
fn command_line_secrets_are_redacted_and_settings_kept() {
    let mut redactor = redactor("vm");
    let line = "BOOT_IMAGE=/vmlinuz-6.1 root=UUID=1f0e-22aa ro iommu=pt isolcpus=2-5 ip=10.0.0.9::10.0.0.1:255.0.0.0:vm:eth0:off \
                rd.luks.key=/k.bin admin_password=\"hunter two\" AUTHTOKEN=abc123 --api-key s3cr3t mitigations=off vconsole.keymap=us \
                inst.ks=http://deploy.corp/ks?x=1 BOOTIF=01-ec-0d-9a-8f-11-02 root2=/dev/disk/by-id/ata-X_S3Z8NB0K\n";
    let shown = redactor.command_line(line);
    for gone in ["1f0e", "10.0.0", "hunter", "two", "abc123", "s3cr3t", "k.bin", "deploy", "9a-8f", "S3Z8", ":vm:"] {
        assert!(!shown.contains(gone), "{gone} in {shown}");
    }
    let kept = ["BOOT_IMAGE=/vmlinuz-6.1", "iommu=pt", "isolcpus=2-5", "mitigations=off", "keymap=us", "255.0.0.0"];
    for kept in kept {
        assert!(shown.contains(kept), "{kept} in {shown}");
    }
    assert_eq!(shown, redactor.command_line(line), "the same value is the same placeholder");
}

fn seen() -> HostAnswers {
    let link = |index: u32, mac: &str, addresses: &[&str]| LinkAnswer {
        index,
        name: format!("enx{}", mac.replace(':', "")),
        mac: mac.into(),
        addresses: addresses.iter().map(|&a| a.to_owned()).collect(),
        ..LinkAnswer::default()
    };
    let mut seen = HostAnswers::default();
    seen.answers.kernel.links = Fact::Known(vec![
        link(2, "ec:0d:9a:8f:11:02", &["10.20.30.40/16", "2a02:120b:1::7/48"]),
        link(3, "ec:0d:9a:8f:11:03", &["10.20.99.1/16"]),
        link(4, "ec:0d:9a:8f:11:04", &["172.16.5.5/30"]),
    ]);
    let files = [
        (HOSTNAME, "storage-dtn\n"),
        (COMMAND_LINE, "quiet password=hunter2 ip=10.20.30.40\n"),
        ("/proc/cpuinfo", "model name\t: A 1.2.3.4\nSerial\t\t: 00000000deadbeef\n"),
        ("/etc/sysctl.d/50-storage-dtn.conf", "# by alice for storage-dtn\nnet.core.rmem_max = 1\n"),
        ("/sys/class/net/enxec0d9a8f1102/mtu", "9000\n"),
        ("/sys/module/mlx5_core/version", "5.8.1.1\n"),
    ];
    seen.files = files.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    seen.answers.errors.insert(
        "/run/10.20.30.40/x".into(),
        super::super::recorded::Refusal { errno: None, why: "storage-dtn said no to 172.16.5.5".into() },
    );
    seen
}

#[test]
fn redaction_removes_names_and_keeps_the_structure() {
    let out = redacted(&seen()).expect("redacted");
    let all = format!("{:?} {}", out.files, serde_json::to_string(&out.answers).expect("plain data"));
    for gone in ["10.20.", "2a02", "172.16", "9a:8f", "9a8f11", "storage-dtn", "hunter2", "deadbeef", "alice"] {
        assert!(!all.to_lowercase().contains(gone), "{gone} in {all}");
    }
    let links = out.answers.kernel.links.known().expect("links").clone();
    assert_eq!(links[0].addresses, ["198.18.0.1/24", "2001:db8:1::1/64"]);
    assert_eq!(links[1].addresses, ["198.18.0.2/24"], "one network as before");
    assert_eq!(links[2].addresses, ["198.18.2.1/30"], "another, and as narrow");
    assert_eq!(links[0].name, "enx020000000001");
    assert_eq!(out.files["/sys/class/net/enx020000000001/mtu"], "9000\n");
    assert_eq!(out.files["/etc/sysctl.d/50-host.conf"], "#\nnet.core.rmem_max = 1\n");
    assert_eq!(out.files["/sys/module/mlx5_core/version"], "5.8.1.1\n");
    assert_eq!(out.files[COMMAND_LINE], "quiet password=redacted-1 ip=198.18.0.1\n");
}

#[test]
fn a_missed_redaction_is_an_error() {
    let mut redactor = redactor("storage-dtn");
    redactor.mac("ec0d9a8f1102", 6, ':');
    let mut leaky = HostAnswers::default();
    leaky.files.insert("/x".into(), "ec:0d:9a:8f:11:02".into());
    let error = redactor.verify(&leaky).expect_err("it is there").to_string();
    assert!(error.contains("a hardware address is still in /x"), "{error}");
}

#[test]
fn short_names_are_redacted_only_where_names_occur() {
    let mut redactor = redactor("vm");
    assert_eq!(redactor.text("vm.min_free_kbytes", Numbers::MayBeAddresses), "vm.min_free_kbytes");
    assert_eq!(redactor.command_line("x=vm vmx"), "x=host vmx\n");
}

proptest! {
    #[test]
    fn redaction_never_panics_and_is_idempotent(text in any::<String>(), like in "[0-9a-f:. -]{0,60}", name in "[a-z.]{0,12}") {
        for text in [text, like] {
            let mut redactor = redactor(&name);
            let once = redactor.text(&text, Numbers::MayBeAddresses);
            prop_assert_eq!(&redactor.text(&text, Numbers::MayBeAddresses), &once);
            let _ = redactor.command_line(&text);
        }
    }

    #[test]
    fn an_address_is_removed_everywhere(ip in any::<[u8; 4]>(), before in "[a-z /=@(,]{0,5}[ =/@(,]", after in "[ ,/:)]([a-z ]{0,5})") {
        let address = std::net::Ipv4Addr::from(ip);
        let placeholder = ip[0] == 198 && ip[1] & 0xfe == 18 || ip[0] == 169 && ip[1] == 254;
        let everybodys = address.is_loopback() || address.is_unspecified() || ip[0] >= 224;
        prop_assume!(!placeholder);
        prop_assume!(!everybodys);
        let shown = shown(&format!("{before}{address}{after}"));
        prop_assert!(!scan::contains_word(&shown, &address.to_string()), "{}", shown);
    }
}
