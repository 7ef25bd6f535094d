#!/usr/bin/env python3
"""What leafd costs, beside nginx and a bare epoll loop, in one run.

    bench.py --leafd FILE --probes FOLDER [--seconds N] [--rounds N] [--quick]

Server CPU a request is user and system time of all threads (/proc/PID/stat) over the requests that wrk counted. Each
server has one event loop and is measured in turn, round after round, so that what else the machine does hits all alike;
shown are the median and the range. nginx answers a constant (`return 200`), the bare loop does not even parse.
"""
import argparse
import os
import pathlib
import re
import signal
import socket
import sqlite3
import statistics
import subprocess
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")
PIPELINE = """
init = function(args)
  local r = {}
  for i = 1, 16 do r[i] = wrk.format(nil, wrk.path) end
  req = table.concat(r)
end
request = function() return req end
"""
NGINX = """
daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log crit;
events {{ worker_connections 2048; }}
http {{
  access_log off; keepalive_requests 1000000000; tcp_nodelay on;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    location / {{ default_type "text/plain;charset=UTF-8"; add_header Cache-Control no-store; return 200 "1234567"; }}
  }}
}}
"""
PATH = "/api/segment/get/order"
SNOWFLAKE = "/api/snowflake/get/order"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(port, path):
    """(status, body) of one request, or (0, b"") while nobody listens."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
            answer = client.makefile("rb")
            status = int(answer.readline().split()[1])
            fields = dict(line.lower().split(b":", 1) for line in iter(answer.readline, b"\r\n"))
            return status, answer.read(int(fields[b"content-length"]))
    except (OSError, IndexError, ValueError, KeyError):
        return 0, b""


class Server:
    """A process that is ended with its block."""

    def __init__(self, name, command, port):
        self.name, self.port = name, port
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()

    def ready(self, path=PATH, pause=0.005):
        """The monotonic time of the first successful answer."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if get(self.port, path)[0] == 200:
                return time.monotonic()
            if self.process.poll() is not None:
                break
            time.sleep(pause)
        self.process.kill()
        raise SystemExit(f"{self.name} does not answer: {self.process.communicate()[1].decode(errors='replace')}")

    def cpu(self):
        """CPU seconds of all threads so far."""
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = stat.rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def rss_kib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1))


def leafd(arguments, folder, *more):
    """leafd on a state folder of its own, with a tag whose lease lasts for the whole run."""
    port, admin = free_port(), free_port()
    command = [arguments.leafd, "--listen", f"127.0.0.1:{port}", "--set", f"server.admin_listen=127.0.0.1:{admin}",
               "--set", f"server.state_dir={folder}", "--store", f"sqlite:{folder}/leafd.db",
               "--set", "segment.step=1000000000", "--set", "segment.waste=4000000000", "--set", "segment.auto_create=true",
               "--set", "log.level=error", *more]
    server = Server("leafd", command, port)
    server.admin = admin
    return server


def load(server, seconds, script=None, path=PATH):
    """(requests a second, CPU in us a request) under 64 connections."""
    command = ["wrk", "-t1", "-c64", f"-d{seconds}s", *(["-s", script] if script else []),
               f"http://127.0.0.1:{server.port}{path}"]
    before = server.cpu()
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    used = server.cpu() - before
    total, took = re.search(r"(\d+) requests in ([\d.]+)(ms|s|m)", text).group(1, 2)
    if "Non-2xx" in text:
        raise SystemExit(f"{server.name} answered with errors:\n{text}")
    return int(total) / float(took), used * 1e6 / int(total)


def spread(values, form="{:.2f}"):
    return f"{form.format(statistics.median(values))} ({form.format(min(values))}-{form.format(max(values))})"


def compare(arguments, folder):
    lua = folder / "pipeline.lua"
    lua.write_text(PIPELINE)
    config, nginx_port, bare_port = folder / "nginx.conf", free_port(), free_port()
    config.write_text(NGINX.format(folder=folder, port=nginx_port))
    state = folder / "compare"
    state.mkdir()
    nginx_command = ["nginx", "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(config)]
    with Server("bare loop", [str(pathlib.Path(arguments.probes) / "bare_loop"), str(bare_port)], bare_port) as bare, \
            Server("nginx", nginx_command, nginx_port) as nginx, \
            leafd(arguments, state, "--set", "server.threads=1") as leaf:
        servers = [bare, nginx, leaf]
        for server in servers:
            server.ready()
        for title, script in (("one request at a time", None), ("16 pipelined", str(lua))):
            rates, costs = {s: [] for s in servers}, {s: [] for s in servers}
            for server in servers:
                load(server, 1, script)
            for _ in range(arguments.rounds):
                for server in servers:
                    rate, cost = load(server, arguments.seconds, script)
                    rates[server].append(rate)
                    costs[server].append(cost)
            print(f"\n64 connections, {title}: median (range) of {arguments.rounds} rounds of {arguments.seconds} s")
            print(f"  {'':10} {'CPU us/request':>22} {'requests/s':>26}")
            for server in servers:
                print(f"  {server.name:10} {spread(costs[server]):>22} {spread(rates[server], '{:.0f}'):>26}")
            ratio = lambda of, a, b: statistics.median(x / y for x, y in zip(of[a], of[b]))
            print(f"  leafd costs {ratio(costs, leaf, bare):.2f}x the bare loop, {ratio(costs, leaf, nginx):.2f}x nginx; "
                  f"its rate is {ratio(rates, leaf, nginx):.2f}x nginx's")


def snowflake(arguments, folder):
    state = folder / "snowflake"
    state.mkdir()
    with leafd(arguments, state, "--set", "server.threads=1") as leaf:
        for path in (PATH, SNOWFLAKE):
            leaf.ready(path)
        rates, costs = {PATH: [], SNOWFLAKE: []}, {PATH: [], SNOWFLAKE: []}
        for _ in range(arguments.rounds):
            for path in (PATH, SNOWFLAKE):
                rate, cost = load(leaf, arguments.seconds, path=path)
                rates[path].append(rate)
                costs[path].append(cost)
    print(f"\nSnowflake over HTTP beside segment, 64 connections: median (range) of {arguments.rounds} rounds")
    print(f"  {'':26} {'CPU us/request':>22} {'requests/s':>26}")
    for path in (PATH, SNOWFLAKE):
        print(f"  {path:26} {spread(costs[path]):>22} {spread(rates[path], '{:.0f}'):>26}")
    ratio = statistics.median(x / y for x, y in zip(costs[SNOWFLAKE], costs[PATH]))
    print(f"  snowflake costs {ratio:.2f}x segment")
    print("\nSnowflake in process")
    seconds = "0.3" if arguments.quick else "2"
    print(subprocess.run([pathlib.Path(arguments.probes) / "mint_loop", seconds], capture_output=True, text=True,
                         check=True).stdout, end="")


def start_times(arguments, folder):
    times = []
    for i in range(arguments.starts):
        state = folder / f"start{i}"
        state.mkdir()
        begin = time.monotonic()
        with leafd(arguments, state) as server:
            times.append((server.ready(pause=0.0005) - begin) * 1000)
    print(f"\nStart to first id, new SQLite file: best {min(times):.0f} ms, median {statistics.median(times):.0f} ms "
          f"of {len(times)}")


def memory(arguments, folder):
    state = folder / "memory"
    state.mkdir()
    with leafd(arguments, state) as server:
        server.ready()
        time.sleep(1)
        idle = server.rss_kib()
        connections = []
        for _ in range(1000):
            client = socket.create_connection(("127.0.0.1", server.port), 5)
            client.sendall(f"GET {PATH} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            client.recv(4096)
            connections.append(client)
        each = (server.rss_kib() - idle) * 1024 / len(connections)
        for client in connections:
            client.close()
    with sqlite3.connect(state / "leafd.db") as table:
        table.executemany("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES (?, 1, 1000)",
                          ((f"tag-{i:012}",) for i in range(10_000)))
    table.close()
    with leafd(arguments, state) as server:
        server.ready()
        end = time.monotonic() + 60
        known = 0
        while known < 10_000 and time.monotonic() < end:
            found = re.search(rb'"known":\s*"?(\d+)', get(server.admin, "/api/v1/status")[1])
            known = int(found.group(1)) if found else 0
            time.sleep(0.1)
        many = server.rss_kib()
    print("\nResident memory")
    print(f"  idle                     {idle / 1024:.1f} MiB")
    print(f"  with {known} tags        {many / 1024:.1f} MiB, {(many - idle) * 1024 / max(known, 1):.0f} bytes a tag of 16 bytes")
    print(f"  an idle connection       {each:.0f} bytes (1000 open, each had one answer)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leafd", default="build/release/bin/leafd")
    parser.add_argument("--probes", default="build/bench/bin", help="folder of bare_loop and mint_loop")
    parser.add_argument("--seconds", type=int, default=5, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--starts", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="one round of a second: does it run?")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seconds, arguments.rounds, arguments.starts = 1, 1, 3
    cpu = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    print(f"{os.cpu_count()} cores, {cpu.group(1) if cpu else 'unknown CPU'}, Linux {os.uname().release}, "
          f"load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="leafd-bench-") as folder:
        compare(arguments, pathlib.Path(folder))
        snowflake(arguments, pathlib.Path(folder))
        start_times(arguments, pathlib.Path(folder))
        memory(arguments, pathlib.Path(folder))


if __name__ == "__main__":
    main()
