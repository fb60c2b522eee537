"""The whole suite again where the host cannot read device memory: nothing follows a device address."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(os.environ.get("NEURON_SIM_HOST_VISIBLE") == "0", reason="this is that run")
@pytest.mark.timeout(1800)
def test_suite_without_host_visible_memory():
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(here), "--ignore", __file__],
        env=os.environ | {"NEURON_SIM_HOST_VISIBLE": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:]
