#!/usr/bin/env python3
"""What leafd costs on each store: real servers, started here on free ports.

    stores.py --leafd FILE --probes FOLDER [--store NAME]... [--rounds N] [--per-round N] [--tags N] [--quick]

- a refill by leafd's driver beside the bare statement run by the database's own library, in turn in one process;
- refills a second while many tags are due at once: each of --tags tags is asked for its first id at the same time;
- the first id after a start, and after the store has come back from an outage (counted from when it answers itself).
"""
import argparse
import http.client
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/harness/py"))
os.environ.setdefault("BUILD_DIR", tempfile.gettempdir())

from leaftest import Etcd, Leafd, MariaDb, Postgres  # noqa: E402


class Sqlite:
    """leafd's own file: there is no server that could go away."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="leafd-bench-")

    def start(self):
        return self

    def url(self):
        return f"sqlite:{self.folder}/leafd.db"

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


STORES = {"sqlite": Sqlite, "mysql": MariaDb, "postgres": Postgres, "etcd": Etcd, "etcd3": lambda: Etcd(3)}


def run_loop(options, url):
    argv = [options.probes + "/store_loop", "--store", url, "--rounds", str(options.rounds), "--per-round",
            str(options.per_round)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def leafd_on(url, folder):
    return Leafd(folder, settings={"store.url": url, "segment.step": "10", "segment.auto_create": "false",
                                   "segment.wait": "30s", "store.timeout": "5s", "snowflake.enabled": "false"})


def make_tags(server, names):
    """Through the admin API: the same for every store."""
    connection = http.client.HTTPConnection("127.0.0.1", server.admin_port)
    for name in names:
        connection.request("PUT", f"/api/v1/tags/{name}", '{"step":10}', {"X-Leafd-Admin": "1"})
        answer = connection.getresponse()
        answer.read()
        if answer.status not in (200, 201):
            sys.exit(f"tag {name}: {answer.status}")


def ask_all(server, names, threads=64):
    """Asks for one id of each tag, pipelined over some connections; seconds until the last answer."""
    def work(mine):
        import socket
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(b"".join(f"GET /api/v1/ids/{name} HTTP/1.1\r\nHost: a\r\n\r\n".encode() for name in mine))
            seen = b""
            while seen.count(b"HTTP/1.1 ") < len(mine) or not seen.endswith(b"}"):
                piece = client.recv(1 << 16)
                if not piece:
                    break
                seen += piece
            if seen.count(b"HTTP/1.1 200") != len(mine):
                sys.exit("not every tag was served: " + seen[-300:].decode(errors="replace"))
    workers = [threading.Thread(target=work, args=(names[i::threads],)) for i in range(threads)]
    begin = time.monotonic()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.monotonic() - begin


def until_served(server, path, timeout=30):
    """Seconds until the first id; asks again and again."""
    begin = time.monotonic()
    while time.monotonic() - begin < timeout:
        try:
            if server.get(path, timeout=5).status == 200:
                return time.monotonic() - begin
        except OSError:
            pass
        time.sleep(0.002)
    sys.exit(f"no id within {timeout} s: {server.log()[-500:]}")


def first_ids(url, folder, starts):
    """Medians of: process start to first id."""
    times = []
    for _ in range(starts):
        server = leafd_on(url, folder)
        begin = time.monotonic()
        server.launch()
        until_served(server, "/api/v1/ids/first")
        times.append(time.monotonic() - begin)
        server.kill()
    return statistics.median(times)


def after_return(store, url, folder):
    """The store is killed and booted again; seconds from its own first answer to leafd's next new lease."""
    server = leafd_on(url, folder)
    server.start()
    until_served(server, "/api/v1/ids/first?n=10")
    members = store.members if isinstance(store, Etcd) else []
    for node in members or [store]:
        node.kill()
    time.sleep(3)
    store.boot(*members)
    took = until_served(server, "/api/v1/ids/first?n=10")
    server.kill()
    return took


def measure(name, options):
    folder = tempfile.mkdtemp(prefix="leafd-bench-")
    store = STORES[name]()
    try:
        store.start()
        url = store.url("admin") if isinstance(store, (MariaDb, Postgres)) else store.url()
        loop = run_loop(options, url)
        server = leafd_on(url, folder)
        server.start()
        until_served(server, "/api/v1/ids/driver")
        names = [f"t{i}" for i in range(options.tags)]
        make_tags(server, names + ["first"])
        seconds = ask_all(server, names)
        server.kill()
        start = first_ids(url, folder, options.starts)
        back = after_return(store, url, folder) if not isinstance(store, Sqlite) and not options.quick else None
        return loop, options.tags / seconds, start, back
    finally:
        store.remove()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leafd", required=True)
    parser.add_argument("--probes", required=True)
    parser.add_argument("--store", action="append", choices=STORES)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--per-round", type=int, default=300)
    parser.add_argument("--tags", type=int, default=10000)
    parser.add_argument("--starts", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="does it run?")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.per_round, options.tags, options.starts = 1, 20, 200, 1
    os.environ["LEAFD_BIN"] = os.path.abspath(options.leafd)
    print(f"load average {os.getloadavg()[0]:.1f}")
    print("| store | refill, us | bare statement, us | ratio | CPU of leafd's thread, us (bare) | refills/s, "
          f"{options.tags} tags due | start to first id, ms | after the store's return, ms |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in options.store or STORES:
        loop, rate, start, back = measure(name, options)
        print(f"| {name} | {loop['driver_us']:.0f} | {loop['bare_us']:.0f} | {loop['driver_us'] / loop['bare_us']:.2f} | "
              f"{loop['driver_cpu_us']:.0f} ({loop['bare_cpu_us']:.0f}) | {rate:.0f} | {start * 1000:.0f} | "
              f"{'-' if back is None else round(back * 1000)} |", flush=True)


if __name__ == "__main__":
    main()
