"""A real etcd for a test, of one member or more: temporary folders, free ports, ended with the test.
Keys are seen through etcd's own JSON gateway, so by another client than leafd's."""

import atexit
import base64
import http.client
import json
import os
import shutil
import signal
import tempfile

from .process import TIME_FACTOR, Child, free_port, wait_until


class EtcdError(Exception):
    """What a member answered instead of a result."""


def _text(data):
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


class EtcdMember:
    """One process. Its data stay over kill() and boot()."""

    def __init__(self, name):
        self.name = name
        self.folder = tempfile.mkdtemp(prefix="leafd-etcd-")
        self.port, self.peer_port = free_port(), free_port()
        self.child = None
        self.options = []
        atexit.register(self.remove)

    @property
    def peer(self):
        return f"{self.name}=http://127.0.0.1:{self.peer_port}"

    def launch(self, cluster, state="new"):
        """Starts it without waiting: it answers when most of the cluster is there."""
        client, peer = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self.peer_port}"
        argv = ["etcd", "--name", self.name, "--data-dir", self.folder + "/data", "--listen-client-urls", client,
                "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", cluster, "--initial-cluster-state", state, "--heartbeat-interval", "50",
                "--election-timeout", str(int(600 * TIME_FACTOR)), "--enable-v2=false", "--logger=zap", "--log-level=warn",
                *self.options]
        env = {name: value for name, value in os.environ.items() if not name.startswith("ETCD")}
        self.child = Child(argv, self.folder + "/log", env=env, cwd=self.folder)

    def call(self, path, body=None, timeout=3):
        """One request of the gateway; EtcdError with the answer unless it is a result."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout * TIME_FACTOR)
        try:
            connection.request("POST", path, json.dumps(body or {}))
            answer = connection.getresponse()
            result = json.loads(answer.read() or b"{}")
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise EtcdError(f"{self.name}: {error!r}") from error
        finally:
            connection.close()
        if answer.status != 200:
            raise EtcdError(f"{self.name}: {answer.status} {result}")
        return result

    def status(self):
        return self.call("/v3/maintenance/status")

    def has_leader(self):
        """Whether it answers and follows, or is, a leader."""
        if not self.child.alive():
            raise AssertionError(f"etcd member {self.name} ended:\n{self.child.log()[-3000:]}")
        try:
            return int(self.status().get("leader", 0)) != 0
        except EtcdError:
            return False

    def leads(self):
        try:
            status = self.status()
            return status.get("leader") == status["header"]["member_id"]
        except EtcdError:
            return False

    def alive(self):
        return self.child is not None and self.child.alive()

    def freeze(self):
        self.child.freeze()

    def thaw(self):
        self.child.thaw()

    def kill(self):
        self.child.kill()

    def stop(self):
        self.child.thaw()
        self.child.signal(signal.SIGTERM)
        self.child.wait(20)

    def remove(self):
        if self.alive():
            self.child.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Etcd:
    """A cluster; `members` is how many it begins with. `options` are etcd's own flags."""

    PREFIX = "/leafd"

    def __init__(self, members=1, *options):
        self.members = [self._member(f"m{i}", options) for i in range(members)]
        self.options = options
        self.cluster = ",".join(member.peer for member in self.members)

    @staticmethod
    def _member(name, options):
        member = EtcdMember(name)
        member.options = list(options)
        return member

    @property
    def nodes(self):
        return self.members

    def start(self):
        for member in self.members:
            member.launch(self.cluster)
        self.wait_ready()
        return self

    def wait_ready(self, members=None):
        for member in members or self.members:
            wait_until(member.has_leader, 30, f"etcd's start ({member.folder}/log)", 0.02)

    def boot(self, *members):
        """Starts members that were killed or stopped."""
        for member in members:  # some wait for each other
            member.launch(self.cluster, "existing")
        self.wait_ready(members)

    def leader(self):
        """The member that leads, once there is one that answers."""
        return wait_until(lambda: next((m for m in self.members if m.alive() and m.child.state() not in "Tt" and m.leads()), None),
                          20, "a leader of etcd", 0.02)

    def followers(self):
        leader = self.leader()
        return [member for member in self.members if member is not leader]

    def add_member(self):
        """One more member, started; it."""
        member = self._member(f"m{len(self.members)}", self.options)
        self.call("/v3/cluster/member/add", {"peerURLs": [member.peer.partition("=")[2]]})
        self.members.append(member)
        self.cluster = ",".join(one.peer for one in self.members)
        member.launch(self.cluster, "existing")
        self.wait_ready([member])
        return member

    def url(self, members=None, user="", ports=None):
        """As store.url has it. ports: of proxies in front of the members, instead of their own."""
        ports = ports or [member.port for member in members or self.members]
        return f"etcd://{user + '@' if user else ''}{','.join(f'127.0.0.1:{port}' for port in ports)}{self.PREFIX}"

    # Keys.
    def call(self, path, body=None):
        """Asked of the leader, and again while the cluster chooses one."""
        def tried():
            try:
                return self.leader().call(path, body)
            except EtcdError as error:
                last.append(error)
                return None
        last = []
        try:
            return wait_until(lambda: (result := tried()) is not None and (result,), 10, f"etcd's answer to {path}", 0.05)[0]
        except AssertionError as error:
            raise AssertionError(f"{error}: {last[-1] if last else 'none'}") from error

    def tag_key(self, tag):
        return f"{self.PREFIX}/leaf_alloc/{tag}"

    def set(self, key, value):
        """Writes it as it is; the revision."""
        return int(self.call("/v3/kv/put", {"key": _text(key), "value": _text(value)})["header"]["revision"])

    def get(self, key):
        """The key's bytes; None: there is none."""
        found = self.call("/v3/kv/range", {"key": _text(key)}).get("kvs", [])
        return base64.b64decode(found[0].get("value", "")) if found else None

    def delete(self, key):
        self.call("/v3/kv/deleterange", {"key": _text(key)})

    def keys(self, prefix=PREFIX + "/"):
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        found = self.call("/v3/kv/range", {"key": _text(prefix), "range_end": _text(end), "keys_only": True}).get("kvs", [])
        return [base64.b64decode(one["key"]).decode("utf-8", "replace") for one in found]

    def put(self, tag, max_id=1, step=1000):
        self.set(self.tag_key(tag), json.dumps({"max_id": str(max_id), "step": step}, separators=(",", ":")))

    def row(self, tag):
        value = self.get(self.tag_key(tag))
        return None if value is None else json.loads(value)

    def max_id(self, tag):
        row = self.row(tag)
        return int(row["max_id"]) if row else None

    def revision(self):
        return int(self.call("/v3/maintenance/status")["header"]["revision"])

    def compact(self):
        """Forgets all revisions but the newest; it."""
        revision = self.revision()
        try:
            self.leader().call("/v3/kv/compaction", {"revision": revision, "physical": True})
        except EtcdError as error:
            if "has been compacted" not in str(error):  # nothing was written since
                raise
        return revision

    def remove(self):
        for member in self.members:
            member.remove()
