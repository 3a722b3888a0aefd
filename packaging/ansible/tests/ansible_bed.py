"""Shared by the tests: hosts that are directories, packages, and runs of playbooks."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parents[1]
TESTS = Path(__file__).resolve().parent
# Directories that a deployment may change: a host has them as copies on write of this machine's.
PARTS = ("usr", "etc", "var")
# Debian's interpreter, which has python3-apt.
PYTHON = "/usr/bin/python3"

# Namespaces of the hosts: mounts, processes, and a network that has only loopback. They end with this shell.
HOLD = """
set -e
ip link set lo up
for host in "$@"; do
    for part in usr etc var; do
        mount -t overlay overlay -o "lowerdir=/$part,upperdir=$host.upper/$part,workdir=$host.work/$part" "$host/$part"
    done
    mount -t proc proc "$host/proc"
    mount --bind /dev "$host/dev"
done
echo ready
exec sleep 3600
"""


def tool(name: str) -> Path:
    """Return a program of Ansible, beside the interpreter or in PATH."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        pytest.skip(f"there is no {name}: pip install ansible-core ansible-lint")
    return Path(found)


def need_roots() -> None:
    """Skip where the hosts cannot be made."""
    if os.geteuid() != 0:
        pytest.skip("hosts in directories need root (mounts, chroot)")
    for name in ("unshare", "nsenter", "ip", "ss", "dpkg-deb", "systemctl", "strip", "make"):
        if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            pytest.skip(f"there is no {name}")
    if not Path("/bin").is_symlink():
        pytest.skip("the hosts are made of a merged /usr, and /bin is a directory here")
    if subprocess.run([PYTHON, "-c", "import apt"], capture_output=True, check=False).returncode != 0:
        pytest.skip("there is no python3-apt, which Ansible's apt module needs")
    for program in ("/usr/bin/landspeed", "/usr/local/bin/landspeed"):
        if Path(program).exists():
            pytest.skip(f"{program} is installed on this machine, and the hosts are copies of it")


@dataclass
class Packages:
    """A directory as `make packages` leaves it."""

    directory: Path
    version: str
    program: Path


def build_packages(directory: Path) -> Packages:
    """Package the program under test as deb and tar archive."""
    built, xtask = os.environ.get("LANDSPEED_BINARY"), os.environ.get("LANDSPEED_XTASK")
    if not built or not xtask:
        pytest.skip("LANDSPEED_BINARY and LANDSPEED_XTASK do not name programs (`cargo xtask test` sets them)")
    program = directory / "landspeed"
    subprocess.run(["strip", "-o", program, built], check=True)
    packages = directory / "packages"
    command = [xtask, "package", "deb", "tarball", "--fast"]
    done = subprocess.run([*command, "--binary", program, "--out", packages], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return Packages(packages, answer.stdout.split()[1], program)


@dataclass
class Run:
    """A run of a playbook: its output, and the tasks that changed or failed on each host."""

    code: int
    text: str

    def recap(self, host: str) -> dict[str, int]:
        """Return the counts of a host: ok, changed, unreachable, failed, skipped."""
        line = next(line for line in self.text.splitlines() if re.match(rf"{host}\s+: ok=", line))
        return {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", line)}

    def failure(self, host: str) -> str:
        """Return what a host failed with."""
        found = re.findall(rf"^(?:fatal|failed): \[{host}\].*?(?=^\S|\Z)", self.text, re.MULTILINE | re.DOTALL)
        assert found, self.text
        return re.sub(r"\s+", " ", " ".join(found))


class Hosts:
    """Hosts in directories of `base`, in separate namespaces."""

    def __init__(self, base: Path, names: tuple[str, ...]) -> None:
        """Create the hosts; skip if the kernel does not permit it."""
        self.base, self.names = base, names
        for name in names:
            for part in PARTS:
                for directory in (name, f"{name}.upper", f"{name}.work"):
                    (base / directory / part).mkdir(parents=True)
            for directory in ("root", "tmp", "run", "proc", "dev"):
                (base / name / directory).mkdir()
            for link in ("bin", "sbin", "lib", "lib64"):
                (base / name / link).symlink_to(f"usr/{link}")
        spaces = ["--mount", "--net", "--pid", "--fork", "--kill-child"]
        paths = [str(base / name) for name in names]
        self.holder = subprocess.Popen(
            ["unshare", *spaces, "sh", "-c", HOLD, "sh", *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.holder.stdout is not None and self.holder.stderr is not None
        if self.holder.stdout.readline() != "ready\n":
            pytest.skip(f"cannot make hosts here: {self.holder.stderr.read().strip()}")
        children = Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children").read_text().split()
        self.enter = ["nsenter", f"--target={children[0]}", "--mount", "--net", "--pid"]

    def close(self) -> None:
        """End everything in the namespaces."""
        self.holder.kill()
        self.holder.wait()

    def path(self, name: str, below: str) -> Path:
        """Return where this machine sees what a host has in /run or what it changed in /usr, /etc or /var."""
        first = below.split("/")[0]
        return self.base / (f"{name}.upper" if first in PARTS else name) / below

    def run(self, command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        """Run a command beside the hosts."""
        return subprocess.run([*self.enter, *command], capture_output=True, text=True, check=False, timeout=900)

    def changes(self, name: str) -> dict[str, str]:
        """Return mode, owner, time and SHA-256 of everything that a host changed in /usr and /etc."""
        found = {}
        for part in ("usr", "etc"):
            top = self.path(name, part)
            for path in sorted(top.rglob("*")):
                about = path.lstat()
                digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
                facts = [oct(about.st_mode), about.st_uid, about.st_gid, about.st_mtime_ns, digest]
                found[str(path.relative_to(top.parent))] = " ".join(map(str, facts))
        return found

    def play(self, inventory: dict[str, dict[str, Any]], *options: str) -> Run:
        """Apply the role to hosts, each with its variables; `root` names the directory of one that is called otherwise."""
        hosts = {}
        for name, variables in inventory.items():
            directory = self.base / variables.get("root", name)
            fixed = {
                "ansible_connection": "root",
                "ansible_python_interpreter": "/usr/bin/python3",
                "ansible_pipelining": True,
            }
            hosts[name] = {"root_directory": str(directory), **fixed, **variables}
        (self.base / "inventory.json").write_text(json.dumps({"all": {"hosts": hosts}}))
        roles = [{"role": "landspeed_serve"}]
        playbook = [{"name": "Deploy", "hosts": "all", "gather_facts": False, "force_handlers": True, "roles": roles}]
        (self.base / "play.json").write_text(json.dumps(playbook))
        settings = {
            "ANSIBLE_ROLES_PATH": SOURCE / "roles",
            "ANSIBLE_CONNECTION_PLUGINS": TESTS / "connection_plugins",
            "ANSIBLE_HOME": self.base / "ansible",
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "ANSIBLE_NOCOLOR": "1",
            "LC_ALL": "C.UTF-8",
        }
        command = ["env", *(f"{name}={value}" for name, value in settings.items()), str(tool("ansible-playbook"))]
        done = self.run([*command, "-i", self.base / "inventory.json", *options, self.base / "play.json"])
        return Run(done.returncode, done.stdout + done.stderr)


@contextlib.contextmanager
def make_hosts(base: Path, names: tuple[str, ...]) -> Iterator[Hosts]:
    """Yield hosts, and end them."""
    need_roots()
    tool("ansible-playbook")
    hosts = Hosts(base, names)
    try:
        yield hosts
    finally:
        hosts.close()
