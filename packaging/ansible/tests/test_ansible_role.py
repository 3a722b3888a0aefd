"""The role landspeed_serve, applied to two hosts: one installs the deb, one the tar archive.

systemd runs on neither. The first is like an image: the real systemctl enables the unit in it. The second has a stand-in for
systemctl that runs the server.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ansible_bed import SOURCE, TESTS, Hosts, Packages, Run, build_packages, make_hosts, tool

KEY = "5a" * 32
OTHER_KEY = "c3" * 32
CONFIG = {"max_tests": 3, "max_rate": "20G", "allow": ["127.0.0.0/8", "::1/128"], "metrics": "127.0.0.1:9210"}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Return packages of the program under test."""
    return build_packages(tmp_path_factory.mktemp("packages"))


@dataclass
class Deployment:
    """Two hosts and what the role did to them.

    `check` is check mode, `first` deploys to "package" and has a typo for "archive", `second` has valid variables for both,
    and `third` repeats `second` for "archive".
    """

    hosts: Hosts
    variables: dict[str, Any]
    check: Run
    after_check: dict[str, str]
    first: Run
    after_first: dict[str, dict[str, str]]
    second: Run
    after_second: dict[str, dict[str, str]]
    calls: list[str]
    third: Run

    def measure(self, key: str) -> subprocess.CompletedProcess[str]:
        """Test against the server with a key."""
        file = self.hosts.base / "client.key"
        file.touch(mode=0o600)
        file.write_text(key + "\n")
        program = self.hosts.path("archive", "usr/local/bin/landspeed")
        command = [str(program), "run", "127.0.0.1", "--key-file", str(file), "-t", "1"]
        return self.hosts.run(["env", "LANDSPEED_ARCHIVE=off", *command])


def take_calls(hosts: Hosts) -> list[str]:
    """Return what the stand-in for systemctl was asked to change since the last time."""
    calls = hosts.path("archive", "run/systemctl.calls")
    said = calls.read_text().splitlines() if calls.exists() else []
    calls.unlink(missing_ok=True)
    return said


def variables(packages: Packages, **others: Any) -> dict[str, Any]:
    """Return the variables of a host."""
    required = {"landspeed_serve_version": packages.version, "landspeed_serve_packages": str(packages.directory)}
    return {**required, "landspeed_serve_key": KEY, "landspeed_serve_config": CONFIG, **others}


@pytest.fixture(scope="module")
def deployed(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Deploy to two fresh hosts. Each run takes seconds, so one run has a claim for each host."""
    with make_hosts(tmp_path_factory.mktemp("hosts"), ("package", "archive")) as hosts:
        give_systemctl(hosts, "archive")
        package, archive = variables(packages), variables(packages, landspeed_serve_format="tarball")
        typo = {**archive, "landspeed_serve_config": {**CONFIG, "max_tsts": 4}}
        before = hosts.changes("package")
        check = hosts.play({"package": package, "archive": archive}, "--check", "--diff")
        after_check = {path: about for path, about in hosts.changes("package").items() if before.get(path) != about}
        first = hosts.play({"package": package, "archive": typo}, "-vvv", "--diff")
        after_first = {name: hosts.changes(name) for name in hosts.names}
        assert take_calls(hosts) == [], first.text
        second = hosts.play({"package": package, "archive": archive}, "-vvv", "--diff")
        after_second = {name: hosts.changes(name) for name in hosts.names}
        calls = take_calls(hosts)
        third = hosts.play({"archive": archive})
        yield Deployment(hosts, archive, check, after_check, first, after_first, second, after_second, calls, third)


def give_systemctl(hosts: Hosts, name: str) -> None:
    """Install the stand-in for systemctl in a host, and the directory that shows that systemd runs."""
    hosts.run(["cp", TESTS / "systemctl", hosts.base / name / "usr/bin/systemctl"]).check_returncode()
    hosts.run(["chmod", "755", hosts.base / name / "usr/bin/systemctl"]).check_returncode()
    (hosts.base / name / "run/systemd/system").mkdir(parents=True)


def test_ansible_lint_accepts_role_and_playbook() -> None:
    lint = subprocess.run(
        [tool("ansible-lint"), "--nocolor", "--strict"], cwd=SOURCE, capture_output=True, text=True, check=False
    )
    assert lint.returncode == 0, lint.stdout + lint.stderr


def test_example_of_the_page_is_the_playbook() -> None:
    def lines(text: str) -> list[str]:
        kept = (line.split(" #")[0].rstrip() for line in text.splitlines() if not line.lstrip().startswith("#"))
        return [line for line in kept if line not in ("", "---") and "landspeed_serve_packages:" not in line]

    page = (SOURCE.parents[1] / "docs" / "ansible.md").read_text()
    assert lines(page.split("```yaml\n")[1].split("```")[0]) == lines((SOURCE / "playbook.yml").read_text())


@pytest.mark.long
def test_both_hosts_have_program_key_and_enabled_unit(deployed: Deployment, packages: Packages) -> None:
    assert deployed.second.code == 0, deployed.second.text
    for host, program in {"package": "usr/bin/landspeed", "archive": "usr/local/bin/landspeed"}.items():
        assert deployed.hosts.path(host, program).read_bytes() == packages.program.read_bytes()
        key = deployed.hosts.path(host, "etc/landspeed/serve.key")
        assert (key.read_text(), oct(key.stat().st_mode & 0o7777), key.stat().st_uid) == (KEY + "\n", "0o600", 0)
        config = deployed.hosts.path(host, "etc/landspeed/serve.toml").read_text()
        assert 'key_file = "/run/credentials/landspeed.service/key"\n' in config
        assert 'max_rate = "20G"\n' in config and "max_tests = 3\n" in config and "no_iperf3 = true\n" in config
        drop_in = deployed.hosts.path(host, "etc/systemd/system/landspeed.service.d/key.conf").read_text()
        assert drop_in.endswith("[Service]\nLoadCredential=key:/etc/landspeed/serve.key\n")
        assert deployed.hosts.path(host, "etc/systemd/system/multi-user.target.wants/landspeed.service").is_symlink()
        assert not deployed.hosts.path(host, "var/cache/landspeed").exists()
    assert "systemd does not run on this host" in deployed.second.text


@pytest.mark.long
def test_second_run_changes_nothing(deployed: Deployment) -> None:
    assert deployed.first.recap("package")["changed"] > 0, deployed.first.text
    assert deployed.second.recap("package")["changed"] == 0, deployed.second.text
    assert deployed.after_second["package"] == deployed.after_first["package"]
    assert deployed.calls == ["daemon-reload", "start", "enable"]
    assert deployed.third.recap("archive")["changed"] == 0, deployed.third.text
    assert deployed.hosts.changes("archive") == deployed.after_second["archive"]
    assert take_calls(deployed.hosts) == []


@pytest.mark.long
def test_check_mode_changes_nothing_and_names_the_changes(deployed: Deployment) -> None:
    assert deployed.check.code == 0, deployed.check.text
    assert deployed.after_check == {}
    for host in deployed.hosts.names:
        assert deployed.check.recap(host)["changed"] >= 4, deployed.check.text


@pytest.mark.long
def test_refused_configuration_starts_no_server(deployed: Deployment) -> None:
    assert "unknown field 'max_tsts'" in deployed.first.failure("archive")
    files = [path for path in deployed.after_first["archive"] if "landspeed" in path and path.startswith("etc/")]
    assert files == ["etc/landspeed"]


@pytest.mark.long
def test_no_output_has_the_key(deployed: Deployment) -> None:
    for run in (deployed.check, deployed.first, deployed.second, deployed.third):
        assert KEY not in run.text


@pytest.mark.long
def test_server_answers_with_the_key_and_opens_only_configured_ports(deployed: Deployment) -> None:
    measured = deployed.measure(KEY)
    assert measured.returncode in (0, 1), measured.stdout + measured.stderr
    assert deployed.measure(OTHER_KEY).returncode == 2
    sockets = deployed.hosts.run(["ss", "--listening", "--tcp", "--udp", "--numeric", "--no-header"]).stdout
    assert {line.split()[4].rpartition(":")[2] for line in sockets.splitlines()} == {"5210", "9210"}, sockets


@pytest.mark.long
def test_server_restarts_once_with_a_new_key(deployed: Deployment) -> None:
    take_calls(deployed.hosts)
    changed = {**deployed.variables, "landspeed_serve_key": OTHER_KEY, "landspeed_serve_config": {**CONFIG, "max_tests": 4}}
    run = deployed.hosts.play({"archive": changed})
    assert run.code == 0, run.text
    assert take_calls(deployed.hosts) == ["daemon-reload", "restart"]
    assert deployed.measure(OTHER_KEY).returncode in (0, 1)
    assert deployed.measure(KEY).returncode == 2


@pytest.mark.long
def test_key_is_removed_and_a_server_that_exits_fails_the_role(deployed: Deployment) -> None:
    # A port that cannot be opened shows only when the server starts.
    taken = {**CONFIG, "listen": ["192.0.2.1:5210"]}
    ends = deployed.hosts.play(
        {"archive": {**deployed.variables, "landspeed_serve_key": "", "landspeed_serve_config": taken}}
    )
    assert ends.code != 0 and "journalctl -u landspeed" in ends.failure("archive"), ends.text
    assert not deployed.hosts.path("archive", "etc/landspeed/serve.key").exists()
    assert "key_file" not in deployed.hosts.path("archive", "etc/landspeed/serve.toml").read_text()


def test_bad_input_fails_clearly_and_changes_nothing(packages: Packages, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(packages.directory, damaged)
    with next(damaged.glob("*.deb")).open("ab") as deb:
        deb.write(b"x")
    bare = tmp_path / "bare"
    bare.mkdir()
    cases: dict[str, tuple[dict[str, Any], str]] = {
        "checksum": ({"landspeed_serve_packages": str(damaged)}, "does not match SHA256SUMS: its SHA-256 is"),
        "archive": (
            {"landspeed_serve_packages": str(bare), "landspeed_serve_format": "tarball"},
            "set landspeed_serve_packages to the directory that `make packages` wrote",
        ),
        "version": ({"landspeed_serve_version": "9.9.9"}, "there is no landspeed_9.9.9-1_amd64.deb in"),
        "format": ({"landspeed_serve_format": "snap"}, "must be one of: auto, deb, rpm, tarball"),
        "user": ({"root_user": "nobody"}, "needs root on the host, and this is nobody: set become: true"),
        "key": ({"landspeed_serve_key": KEY[:-1]}, "landspeed_serve_key is not a key: 64 hexadecimal digits"),
        "file": (
            {"landspeed_serve_key": "{{ lookup('ansible.builtin.file', '" + str(bare / "site.key") + "') }}"},
            str(bare / "site.key"),
        ),
        "open": ({"landspeed_serve_key": "", "landspeed_serve_config": {}}, "everyone who can reach the host may test"),
        "twice": ({"landspeed_serve_config": {"key_file": "/etc/key"}}, "landspeed_serve_config has key_file"),
        "missing": ({}, "missing required arguments: landspeed_serve_version"),
    }
    with make_hosts(tmp_path / "hosts", ("fresh",)) as hosts:
        inventory = {name: variables(packages, root="fresh", **others) for name, (others, _) in cases.items()}
        del inventory["missing"]["landspeed_serve_version"]
        run = hosts.play(inventory, "--forks=4", "-vv")
        assert run.code != 0
        for name, (_, words) in cases.items():
            assert words in run.failure(name), (name, run.failure(name))
            assert run.recap(name)["changed"] == 0, run.text
        assert hosts.changes("fresh") == {}
        assert KEY[:-1] not in run.text
