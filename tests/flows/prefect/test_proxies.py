"""A run's own server is on this machine: no proxy that the environment names stands between."""

from tests.support.command_line import CommandLine
from tests.support.processes import free_port


def test_a_run_reaches_its_server_whatever_proxy_is_set(yarus_alone: CommandLine) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"), nobody)
    ran = yarus_alone("run", "tier0", "--json", env=proxies)
    assert ran.json["state"] == "completed"
    assert "has not recorded" not in ran.err
