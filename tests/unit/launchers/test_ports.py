import os
import socket

from pytest_llmperf.launchers.ports import holder


def test_the_holder_of_a_port_is_named() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        assert holder(port) is None
        listening.listen()
        found = holder(port)
    assert found is not None
    assert found.startswith(f"pid {os.getpid()} (")
    assert holder(port) is None
