"""Runs docs/high-availability.md: each section's shell blocks on the cluster that it speaks of, with the section's
own haproxy.cfg and check, and compares its settings with those of the servers that the tests of clusters run on."""

import argparse
import contextlib
import os
import pathlib
import re
import tempfile

from leaftest import Child, Etcd, Galera, MariaDbPair, PgBouncer, PostgresPair, can_connect, free_port, wait_until

from run_blocks import Reader, commands, is_server


def sections(text):
    """{heading: [(language, first line number, lines)]}"""
    found, heading, fence = {}, None, None
    for number, line in enumerate(text.splitlines(), 1):
        if fence is not None:
            if line.strip() == "```":
                found[heading].append(fence)
                fence = None
            else:
                fence[2].append(line)
        elif line.startswith("## ") or line.startswith("### "):
            heading = line.lstrip("# ")
            found[heading] = []
        elif line.startswith("```"):
            fence = (line[3:].strip(), number + 1, [])
    return {name: blocks for name, blocks in found.items() if blocks}


class ClusterReader(Reader):
    """ports: of the document -> of the servers."""

    def __init__(self, root, leafd, folder, ports):
        super().__init__(root, leafd, folder)
        self.ports.update(ports)
        self.environment.update(PGUSER="root", PGPASSWORD="leaf", ETCDCTL_API="3")

    def ports_in(self, text):
        return re.sub(r"(?<=[:=])\d{4,5}\b", lambda port: self.ports.get(port[0], port[0]), text)

    def prepare(self, command):
        return self.ports_in(re.sub(r"\bbuild/release/bin/leafd", str(self.leafd), command))


def mariadb_pair(stack, semisync):
    pair = MariaDbPair(semisync=semisync)
    stack.callback(pair.remove)
    pair.start().put("order")
    pair.wait_caught_up()
    return pair, {"3306": free_port(), "3307": pair.primary.port, "3308": pair.replica.port}


def galera(stack):
    cluster = Galera()
    stack.callback(cluster.remove)
    cluster.start().put("order")
    return (lambda name: cluster.nodes[0].sql(f"SELECT @@global.{name}")[0][0],
            {"3306": free_port(), **{str(3307 + i): node.port for i, node in enumerate(cluster.nodes)}})


def mariadb(stack, semisync=False):
    pair, ports = mariadb_pair(stack, semisync)
    return lambda name: pair.primary.sql("SHOW GLOBAL VARIABLES LIKE %s", (name,))[0][1], ports


def postgres(stack, synchronous=False):
    pair = PostgresPair(synchronous=synchronous)
    stack.callback(pair.remove)
    pair.start().put("order")
    pair.primary.sql("ALTER ROLE root PASSWORD 'leaf'")
    wait_until(pair.caught_up, what="the standby's catching up")
    return lambda name: pair.primary.value(f"SHOW {name}"), {"5432": pair.primary.port, "5433": pair.standby.port}


def pgbouncer(stack):
    _, ports = postgres(stack, synchronous=True)
    pooler = PgBouncer(ports["5432"])
    stack.callback(pooler.remove)
    pooler.start()
    with open(pooler.folder + "/ini", encoding="ascii") as file:
        settings = dict(line.strip().split(" = ", 1) for line in file if " = " in line)
    return settings.get, {**ports, "6432": pooler.port}


def etcd(stack):
    cluster = Etcd(3)
    stack.callback(cluster.remove)
    cluster.start().put("order")
    return None, dict(zip(("2379", "22379", "32379"), (member.port for member in cluster.members)))


CLUSTERS = {
    "Galera": galera,
    "MariaDB with an asynchronous replica": mariadb,
    "MariaDB with a semi-synchronous replica": lambda stack: mariadb(stack, semisync=True),
    "PostgreSQL with an asynchronous standby": postgres,
    "PostgreSQL with a synchronous standby": lambda stack: postgres(stack, synchronous=True),
    "Through PgBouncer": pgbouncer,
    "etcd": etcd,
}


def plain(value):
    """A setting as the server prints it, however it is written."""
    value = str(value).strip().strip("'").lower()
    return {"1": "on", "0": "off", "true": "on"}.get(value, value)


def compare(lines, setting):
    """Each `name = value` is what the server has."""
    for line in lines:
        if line.startswith("#") or not line.strip():
            continue
        name, value = (part.strip() for part in line.split("=", 1))
        found = setting(name)
        if name == "log_bin":
            value = "ON"
        if plain(found) != plain(value):
            raise AssertionError(f"the document says {name} = {value}, the server of the tests has {found}")
        print(f"{name} = {value}")


def start_haproxy(reader, stack, config, check):
    script = os.path.join(reader.folder, "check")
    with open(script, "w", encoding="ascii") as file:
        file.write("\n".join(check) + "\n")
    os.chmod(script, 0o755)
    path = os.path.join(reader.folder, "haproxy.cfg")
    with open(path, "w", encoding="ascii") as file:
        file.write(reader.ports_in(re.sub(r"/etc/haproxy/\S+", script, "\n".join(config))) + "\n")
    child = Child(["haproxy", "-db", "-f", path], os.path.join(reader.folder, "haproxy.log"))
    stack.callback(child.kill)
    wait_until(lambda: can_connect(int(reader.ports["3306"])), 10, "HAProxy's start")


def run_section(reader, stack, blocks, setting):
    first = {}
    for language, _, lines in blocks:
        first.setdefault(language, lines)
    if "haproxy" in first:
        start_haproxy(reader, stack, first["haproxy"], first["check"])
    ran = 0
    for language, number, lines in blocks:
        if language == "ini":
            compare(lines, setting)
        for command in commands(lines) if language == "sh" else ():
            print(f"line {number}: {command}", flush=True)
            command = reader.prepare(command)
            (reader.start if is_server(command) else reader.run)(command)
            ran += 1
    return ran


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--leafd", type=pathlib.Path, required=True)
    parser.add_argument("document", type=pathlib.Path)
    parser.add_argument("--only", help="the heading of one section")
    options = parser.parse_args()
    found = sections(options.document.read_text())
    if set(found) != set(CLUSTERS):
        raise SystemExit(f"sections with blocks and clusters to run them on differ: {set(found) ^ set(CLUSTERS)}")
    ran = 0
    for heading, blocks in found.items():
        if options.only not in (None, heading):
            continue
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            setting, ports = CLUSTERS[heading](stack)
            reader = ClusterReader(options.root, options.leafd.resolve(), folder, {port: str(other) for port, other in ports.items()})
            stack.callback(reader.stop)
            print(f"--- {heading}")
            ran += run_section(reader, stack, blocks, setting)
    print(f"{ran} commands ran")


if __name__ == "__main__":
    main()
