"""What all methods share: JSON in and out, the configuration, ISO 8601."""

import configparser
import datetime
import json
import os
import re
import shutil
import sys
from typing import Any, Callable, Dict, Optional

Json = Dict[str, Any]

CONFIGURATION = "/etc/pscheduler/tool/landspeed.conf"
SERVER_PORT = 5201
"""perfSONAR's firewall rules open it for throughput tests, TCP and UDP."""

_DURATION = re.compile(r"P(?!$)(?:([\d.]+)W)?(?:([\d.]+)D)?(?:T(?!$)(?:([\d.]+)H)?(?:([\d.]+)M)?(?:([\d.]+)S)?)?", re.ASCII)
_TIME = re.compile(
    r"(\d{4})-?(\d\d)-?(\d\d)[T ](\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?(Z|([+-])(\d\d):?(\d\d)?)?", re.ASCII | re.I
)


class MethodError(Exception):
    """The method cannot answer: exit status 1, the text on standard error."""


def answer(method: Callable[[Json], Any]) -> None:
    """Call `method` with the object on standard input and print its answer as JSON."""
    try:
        try:
            question = json.loads(sys.stdin.buffer.read().decode("utf-8"))
        except (ValueError, RecursionError) as why:
            raise MethodError("invalid JSON on standard input: {}".format(why)) from None
        if not isinstance(question, dict):
            raise MethodError("invalid JSON on standard input: not an object")
        result = method(question)
    except MethodError as why:
        sys.stderr.write("{}\n".format(why).encode("ascii", "backslashreplace").decode("ascii"))
        sys.exit(1)
    print(json.dumps(result))


class Configuration:
    """The settings of this host; a missing file means the defaults."""

    def __init__(self) -> None:
        """Read the file."""
        path = os.environ.get("LANDSPEED_PSCHEDULER_CONF", CONFIGURATION)
        parser = configparser.ConfigParser()
        try:
            parser.read(path, encoding="utf-8")
            own = parser["landspeed"] if parser.has_section("landspeed") else parser["DEFAULT"]
            self.program = own.get("program", "landspeed")
            self.server_port = own.getint("server_port", SERVER_PORT)
            self.capture = own.getboolean("capture", False)
        except (configparser.Error, ValueError, OSError) as why:
            raise MethodError("cannot read {}: {}".format(path, why)) from None
        if not 1 <= self.server_port <= 65535:
            raise MethodError("cannot read {}: server_port must be 1 to 65535".format(path))

    def find_program(self) -> Optional[str]:
        """Return the path of landspeed, or None if there is no such program."""
        return shutil.which(self.program, path=os.environ.get("PATH", "/usr/bin") + ":/usr/local/bin")


def parse_duration(text: Any) -> float:
    """Return the seconds of an ISO 8601 duration without months and years."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) and len(text) < 100 else None
    if match is None:
        raise ValueError("not an ISO 8601 duration")
    units = (604800, 86400, 3600, 60, 1)
    return sum(float(number) * unit for number, unit in zip(match.groups(), units) if number)


def parse_time(text: Any) -> float:
    """Return the seconds since the epoch of an ISO 8601 date and time; without a zone, of local time."""
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError("not an ISO 8601 date and time")
    year, month, day, hour, minute, second, fraction, zone, sign, ahead, minutes = match.groups()
    moment = datetime.datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0))
    if zone is None:
        seconds = moment.timestamp()
    else:
        offset = 0 if sign is None else int(sign + "1") * (int(ahead) * 3600 + int(minutes or 0) * 60)
        seconds = moment.replace(tzinfo=datetime.timezone.utc).timestamp() - offset
    return seconds + float("0." + (fraction or "0"))


def shorten(text: str, limit: int) -> str:
    """Return at most about `limit` characters of `text`: its beginning and its end."""
    text = text.strip().replace("\0", "")
    if len(text) <= limit:
        return text
    left_out = len(text) - limit
    half = limit // 2
    return "{}\n... {} characters left out ...\n{}".format(text[:half], left_out, text[-(limit - half) :])
