"""A MariaDB primary with a replica, asynchronous or semi-synchronous, in temporary folders."""

import itertools
import shutil
import subprocess

from .mariadb import MariaDb, fresh_data_folder
from .process import wait_until

# A primary that has waited for its replica for so long would go on without; this is MariaDB's longest.
LONGEST_TIMEOUT_MS = 18446744073709551615

_numbers = itertools.count(1)


def _node(semisync, options):
    number = next(_numbers)
    own = [f"--server-id={number}", "--log-bin=bin", "--log-slave-updates", "--sync-binlog=1", "--binlog-format=ROW",
           "--gtid-strict-mode=ON", "--relay-log=relay", "--slave-net-timeout=10"]
    if semisync:
        own += ["--rpl-semi-sync-slave-enabled=ON",
                "--rpl-semi-sync-master-wait-point=AFTER_SYNC", f"--rpl-semi-sync-master-timeout={LONGEST_TIMEOUT_MS}",
                "--rpl-semi-sync-master-wait-no-slave=ON"]
    return MariaDb(*own, *options)


class MariaDbPair:
    """start() makes database `leaf` on the primary, as MariaDb does, and waits until the replica has
    it. semisync: a commit waits until the replica has written it to its log."""

    def __init__(self, *options, semisync=False):
        self.semisync = semisync
        self.primary, self.replica = _node(semisync, options), _node(semisync, options)

    @property
    def nodes(self):
        return [self.primary, self.replica]

    def start(self):
        # Nothing commits on a semi-synchronous primary before it has a replica.
        self.primary.boot()
        self.primary.sql("SET GLOBAL gtid_slave_pos = ''")
        self.replica.boot()
        self._follow()
        self._lead()
        self.primary.make_database()
        self.wait_caught_up()
        return self

    def _follow(self):
        """The replica follows the primary from where it stands itself."""
        self.replica.sql("SET GLOBAL read_only = 1")
        self.replica.sql("CHANGE MASTER TO master_host = '127.0.0.1', master_port = %s, master_user = 'root', "
                         "master_connect_retry = 1, master_use_gtid = slave_pos", (self.primary.port,))
        self.replica.sql("START SLAVE")
        wait_until(lambda: self.replica.status("Slave_running") == "ON", what=self._why_not_following)

    def _why_not_following(self):
        return (f"the replica's start ({self.replica.sql('SHOW SLAVE STATUS')}; "
                f"the primary's log ends:\n{self.primary.child.log()[-6000:]})")

    def _lead(self):
        """A primary waits for its replica. A replica must not wait for one of its own, so this is off
        there and begins with the role."""
        if not self.semisync:
            return
        self.primary.sql("SET GLOBAL rpl_semi_sync_master_enabled = ON")
        wait_until(lambda: int(self.primary.status("Rpl_semi_sync_master_clients")) > 0
                   and self.primary.status("Rpl_semi_sync_master_status") == "ON", what="a semi-synchronous replica")

    def caught_up(self):
        return self._position(self.primary, "gtid_binlog_pos") == self._position(self.replica, "gtid_slave_pos")

    def wait_caught_up(self):
        wait_until(self.caught_up, 20, "the replica's catching up", 0.02)

    @staticmethod
    def _position(node, name):
        return node.sql(f"SELECT @@global.{name}")[0][0]

    def hold_replica(self):
        """From now on the replica receives nothing; what the primary commits is what a failover loses.
        A semi-synchronous primary waits instead."""
        self.replica.sql("STOP SLAVE")

    def resume_replica(self):
        self.replica.sql("START SLAVE")

    def promote(self):
        """The replica, once it has applied all that it has received, becomes the primary. The old one is
        left as it is."""
        self.replica.sql("STOP SLAVE IO_THREAD")
        wait_until(self._relay_log_applied, 20, "the end of the relay log", 0.02)
        self.replica.sql("STOP SLAVE")
        self.replica.sql("RESET SLAVE ALL")
        if self.semisync:
            self.replica.sql("SET GLOBAL rpl_semi_sync_master_enabled = ON")
        self.replica.sql("SET GLOBAL read_only = 0")
        self.primary, self.replica = self.replica, self.primary

    def _relay_log_applied(self):
        rows = self.replica.sql("SHOW SLAVE STATUS")
        return not rows or "Slave has read all relay log" in str(rows[0]) or not self.replica.sql(
            "SELECT 1 FROM information_schema.processlist WHERE command = 'Slave_SQL'")

    def fail_over(self):
        """The primary dies and the replica takes its place."""
        self.primary.kill()
        self.promote()

    def demote(self):
        """As an orderly change of roles does it: the primary takes no more writes, the replica catches
        up and becomes the primary, and the old one follows it."""
        self.primary.sql("SET GLOBAL read_only = 1")
        self.wait_caught_up()
        self.promote()
        self.replica.sql("SET GLOBAL gtid_slave_pos = @@global.gtid_binlog_pos")
        if self.semisync:
            self.replica.sql("SET GLOBAL rpl_semi_sync_master_enabled = OFF")
        self._follow()
        self._lead()

    def rejoin(self):
        """The node that is not the primary comes back, with what it alone had thrown away: a fresh
        folder, filled by the primary's binary log. Under its old number it would skip what it had
        written itself before."""
        node = self.replica
        if node.child.alive():
            node.kill()
        node.options = [option for option in node.options if not option.startswith("--server-id=")]
        node.options.append(f"--server-id={next(_numbers)}")
        shutil.rmtree(node.data)
        subprocess.run(["cp", "-a", "--reflink=auto", fresh_data_folder(), node.data], check=True)
        node.boot()
        self._follow()
        self._lead()

    def url(self, user="leaf", port=None):
        return self.primary.url(user, port)

    def put(self, tag, max_id=1, step=1000):
        self.primary.put(tag, max_id, step)

    def max_id(self, tag):
        return self.primary.max_id(tag)

    def remove(self):
        for node in self.nodes:
            node.remove()
