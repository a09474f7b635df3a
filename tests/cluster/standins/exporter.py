"""``dcgm-exporter`` of a node: its default counters at ``:9400/metrics``, with the job of each."""

from __future__ import annotations

import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.cluster.standins.cards import MEMORY_MIB, NAME, Card, Reading, cards, read, read_state

PORT = 9400
#: Of the default list of counters, those that slurmtop reads; SM activity is not among them.
COUNTERS: dict[str, Callable[[Reading], object]] = {
    "DCGM_FI_DEV_SM_CLOCK": lambda got: got.clock_mhz,
    "DCGM_FI_DEV_MEMORY_TEMP": lambda got: got.mem_temp_c,
    "DCGM_FI_DEV_GPU_TEMP": lambda got: got.temp_c,
    "DCGM_FI_DEV_POWER_USAGE": lambda got: f"{got.power_w:.3f}",
    "DCGM_FI_DEV_GPU_UTIL": lambda got: got.util,
    "DCGM_FI_DEV_MEM_COPY_UTIL": lambda got: got.mem_util,
    "DCGM_FI_DEV_XID_ERRORS": lambda got: got.xid,
    "DCGM_FI_DEV_FB_USED": lambda got: got.memory_mib,
    "DCGM_FI_DEV_FB_FREE": lambda got: MEMORY_MIB - got.memory_mib,
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": lambda got: f"{got.sm:.6f}",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": lambda got: f"{got.tensor:.6f}",
    "DCGM_FI_PROF_DRAM_ACTIVE": lambda got: f"{got.dram:.6f}",
    "DCGM_FI_PROF_PCIE_TX_BYTES": lambda got: got.pcie_tx,
    "DCGM_FI_PROF_PCIE_RX_BYTES": lambda got: got.pcie_rx,
}


def metrics() -> str:
    """The text of one scrape."""
    state = read_state()
    shown = [(card, read(card, state)) for card in cards(state) if not card.lost]
    lines = []
    for name, value in COUNTERS.items():
        lines += [f"# HELP {name} {name}.", f"# TYPE {name} gauge"]
        lines += [f"{name}{{{_labels(card)}}} {value(got)}" for card, got in shown]
    return "\n".join(lines) + "\n"


def _labels(card: Card) -> str:
    labels = {
        "gpu": card.dcgm_id,
        "UUID": card.uuid,
        "pci_bus_id": card.bus_id,
        "device": f"nvidia{card.dcgm_id}",
        "modelName": NAME,
        "Hostname": socket.gethostname(),
        "DCGM_FI_DRIVER_VERSION": "590.48.01",
    }
    if card.processes:
        labels["hpc_job"] = card.processes[0].job
    return ",".join(f'{name}="{value}"' for name, value in labels.items())


class _Scrape(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = metrics().encode() if self.path == "/metrics" else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of each scrape."""


def main() -> None:
    """Serve until it is ended."""
    ThreadingHTTPServer(("", PORT), _Scrape).serve_forever()
