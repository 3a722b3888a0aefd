"""Connection plugin: the host is a directory of the control host, entered with chroot(8)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from ansible.plugins.connection import ConnectionBase

DOCUMENTATION = """
name: root
short_description: run in a directory as root directory
description: Needs root. Hosts are directories on the control host.
options:
  directory:
    description: Root directory of the host.
    required: true
    vars: [{name: root_directory}]
  user:
    description: User that commands run as.
    default: root
    vars: [{name: root_user}]
extends_documentation_fragment: [connection_pipelining]
"""

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Connection(ConnectionBase):  # type: ignore[misc]
    """Runs commands by chroot(8) and copies files into the directory."""

    transport = "root"
    has_pipelining = True

    def _connect(self) -> Connection:
        self._connected = True
        return self

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Run a shell command."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        user = self.get_option("user")
        home = "/root" if user == "root" else "/tmp"
        command = ["chroot", f"--userspec={user}", self.get_option("directory"), "/usr/bin/env", "-i", PATH, f"HOME={home}"]
        done = subprocess.run([*command, "/bin/sh", "-c", cmd], input=in_data or b"", capture_output=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def _below(self, path: Any) -> Path:
        return Path(self.get_option("directory")) / str(path).lstrip("/")

    def put_file(self, in_path: str, out_path: str) -> None:
        """Copy a file to the host."""
        super().put_file(in_path, out_path)
        shutil.copyfile(in_path, self._below(out_path))

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Copy a file from the host."""
        super().fetch_file(in_path, out_path)
        shutil.copyfile(self._below(in_path), out_path)

    def close(self) -> None:
        """Close the connection, which holds nothing open."""
        self._connected = False
