"""leafctl doctor: says what leafd would say of a store, and with each finding what mends it. Faults are
planted on real servers; what the doctor prints is then done by hand, and the next run is clean."""

import hashlib
import json
import os
import subprocess
import unittest

import pymysql

from leaftest import TIME_FACTOR, Etcd, FakeClock, LeafdCase, MariaDb, MariaDbCase, Postgres, ZooKeeper, free_port
from leaftest.leafd import environment

LEAFCTL = os.environ["LEAFCTL_BIN"]
PASSWORD = "leaf"
UNKNOWN = "LARGEST_ID_EVER_ISSUED + 1"  # in a remedy: what only the user can know


class DoctorCase(LeafdCase):
    """run() gives the report of a doctor; settings are as of leafd."""

    wrapper = ()  # words before leafctl

    def call(self, *arguments, settings=None):
        argv = [*self.wrapper, LEAFCTL, "doctor", *arguments]
        for name, value in {"server.state_dir": self.folder + "/state", **(settings or {})}.items():
            argv += ["--set", f"{name}={value}"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60 * TIME_FACTOR, check=False,
                              env=environment())
        self.assertEqual(done.stderr, "")
        return done

    def report(self, url, expect, **settings):
        done = self.call("--json", "--store", url, settings={name.replace("__", "."): value for name, value in settings.items()})
        report = json.loads(done.stdout)
        self.assertEqual(report["verdict"], expect, done.stdout)
        self.assertEqual(done.returncode, 1 if expect == "error" else 0, done.stdout)
        self.assertEqual(max((finding["severity"] for finding in report["findings"]), key=["ok", "warning", "error"].index), expect)
        return report

    def finding(self, report, severity, text, check=None):
        """The one finding of that severity whose sentence holds the text."""
        found = [finding for finding in report["findings"] if finding["severity"] == severity and text in finding["found"] and
                 check in (None, finding["check"])]
        self.assertEqual(len(found), 1, (text, report["findings"]))
        return found[0]

    def mended(self, url, expect, text, how, **settings):
        """A finding with the text is there; `how` is given its remedy; after that no finding has the text."""
        finding = self.finding(self.report(url, expect, **settings), expect, text)
        self.assertTrue(finding["mend"], finding)
        how(finding["mend"])
        after = json.loads(self.call("--json", "--store", url, settings={n.replace("__", "."): v for n, v in settings.items()}).stdout)
        self.assertEqual([one for one in after["findings"] if text in one["found"]], [])
        return after


def files(folder):
    """Names and contents of all files below a folder."""
    found = {}
    for top, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(top, name), "rb") as file:
                found[os.path.join(top, name)] = hashlib.sha256(file.read()).hexdigest()
    return found


def without_index(found):
    """A reader of SQLite's write-ahead log notes in the index (-shm) where it reads."""
    return {name: content for name, content in found.items() if not name.endswith("-shm")}


class MariaDbDoctorTest(DoctorCase, MariaDbCase):
    def setUp(self):
        super().setUp()
        self.database.sql("DROP TABLE IF EXISTS leaf.leaf_alloc, leaf.leafd_worker")
        self.database.create_table()
        done = subprocess.run([LEAFCTL, "store", "init", "--store", self.database.url("admin")], capture_output=True, text=True,
                              timeout=60 * TIME_FACTOR, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.database.sql("GRANT INSERT, DELETE ON leaf.* TO leaf@'%'")
        self.database.put("order")
        self.url = self.database.url()

    def by_hand(self, statement):
        with self.database.connect(database="leaf", client_flag=1 << 16) as connection, connection.cursor() as cursor:
            cursor.execute(statement)

    def test_a_healthy_one_is_clean_and_unchanged(self):
        before = self.database.sql("SELECT * FROM leaf.leaf_alloc"), self.database.sql("SELECT * FROM leaf.leafd_worker")
        done = self.call("--store", self.url)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("\nverdict: ", "\n" + done.stdout.splitlines()[-1])
        report = self.report(self.url, "warning")  # of the collation of Leaf's own table
        self.assertEqual([f["found"] for f in report["findings"] if f["severity"] == "warning" and "compares by" not in f["found"]], [])
        self.assertEqual(report["store"]["kind"], "mysql")
        self.assertEqual(report["store"]["durability"], "power")
        self.assertTrue(report["store"]["identity"].startswith("mariadb:"))
        for output in (done.stdout, json.dumps(report)):
            self.assertNotIn(f":{PASSWORD}@", output)
        self.assertEqual((self.database.sql("SELECT * FROM leaf.leaf_alloc"), self.database.sql("SELECT * FROM leaf.leafd_worker")), before)
        self.assertFalse(os.path.exists(self.folder + "/state"))

    def test_the_collation_can_be_changed_as_told(self):
        after = self.mended(self.url, "warning", "biz_tag compares by", self.by_hand)
        self.assertEqual(after["verdict"], "ok")

    def test_engine(self):
        self.database.sql("ALTER TABLE leaf.leaf_alloc ENGINE=MyISAM")
        self.mended(self.url, "error", "has the engine MyISAM", self.by_hand)

    def test_types(self):
        self.database.sql("ALTER TABLE leaf.leaf_alloc MODIFY max_id bigint unsigned NOT NULL")
        self.mended(self.url, "error", "ids need a signed bigint", self.by_hand)

    def test_key(self):
        self.database.sql("ALTER TABLE leaf.leaf_alloc DROP PRIMARY KEY")
        self.mended(self.url, "error", "no unique key on biz_tag", self.by_hand)

    def test_missing_tables(self):
        self.database.sql("DROP TABLE leaf.leafd_worker")
        self.mended(self.url, "error", "the table `leaf`.`leafd_worker` does not exist", self.by_hand)
        self.database.sql("DROP TABLE leaf.leaf_alloc")
        self.mended(self.url, "error", "the table `leaf`.`leaf_alloc` does not exist", self.by_hand)

    def test_privileges(self):
        self.database.sql("CREATE OR REPLACE USER reader@'127.0.0.1' IDENTIFIED BY 'leaf'")
        self.addCleanup(self.database.sql, "DROP USER reader@'127.0.0.1'")
        self.database.sql("GRANT SELECT ON leaf.* TO reader@'127.0.0.1'")
        url = self.database.url("reader")
        report = self.report(url, "error")
        self.assertIn("GRANT SELECT, UPDATE ON `leaf`.`leaf_alloc` TO 'reader'@'127.0.0.1';", [f["mend"] for f in report["findings"]])
        for finding in report["findings"]:
            if finding["severity"] == "error":
                self.by_hand(finding["mend"])
        report = self.report(url, "warning")
        for privilege in ("INSERT", "DELETE"):
            self.by_hand(self.finding(report, "warning", f"may not {privilege} on")["mend"])
        report = self.report(url, "warning")
        self.assertEqual([f for f in report["findings"] if "may not" in f["found"]], [])

    def test_read_only(self):
        self.database.sql("SET GLOBAL read_only = 1")
        self.addCleanup(self.database.sql, "SET GLOBAL read_only = 0")
        self.mended(self.url, "error", "the server is read-only", lambda mend: self.by_hand(mend.partition(", run ")[2]))

    def test_flush_setting(self):
        self.database.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 2")
        self.addCleanup(self.database.sql, "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
        self.mended(self.url, "error", "the store is only 'process'-durable", self.by_hand)
        report = self.report(self.url, "error", store__min_durability="replicated")
        self.assertIn("rpl_semi_sync_master_enabled = 1", self.finding(report, "error", "only 'power'-durable", "durability")["mend"])

    def test_rows(self):
        self.database.sql("ALTER TABLE leaf.leaf_alloc MODIFY max_id bigint NULL")
        self.database.put("null", None)
        self.database.put("still", 5, 0)
        self.database.put("it's\\negative", -7)
        self.database.put("full", 2**63 - 10, 1000)
        self.database.put("near", 2**63 - 2**59)
        report = self.report(self.url, "error")
        self.finding(report, "warning", "is near the end of the ids")
        self.finding(report, "warning", "its name is not of")
        self.finding(report, "error", "'full'")
        for text in ("has max_id NULL", "has step 0", "has the negative max_id -7"):
            mend = self.finding(report, "error", text)["mend"]
            if UNKNOWN in mend:
                with self.assertRaises(pymysql.err.OperationalError):
                    self.by_hand(mend)
            self.by_hand(mend.replace(UNKNOWN, "43"))
        report = self.report(self.url, "error")
        self.assertEqual([f["subject"] for f in report["findings"] if f["severity"] == "error"], ["tag 'full'"])
        self.assertEqual(self.database.max_id("it's\\negative"), 43)
        self.assertEqual(self.database.max_id("null"), 43)

    def test_a_null_step_is_no_reason_to_touch_the_maximum(self):
        self.database.sql("ALTER TABLE leaf.leaf_alloc MODIFY step int NULL")
        self.database.put("odd", 500, None)
        mend = self.finding(self.report(self.url, "error"), "error", "has step NULL")["mend"]
        self.assertNotIn("max_id", mend)
        self.by_hand(mend)
        self.assertEqual(self.database.max_id("odd"), 500)

    def test_a_row_that_went_back(self):
        server = self.mysql_leafd(settings={"segment.auto_create": "false"}).start()
        state = server.settings["server.state_dir"]
        for _ in range(3):
            server.id("order")
        running = self.report(self.url, "warning", server__state_dir=state)
        self.finding(running, "ok", "leafd is running")
        server.stop()
        self.report(self.url, "warning", server__state_dir=state)
        self.database.sql("UPDATE leaf.leaf_alloc SET max_id = 2 WHERE biz_tag = 'order'")
        mend = self.finding(self.report(self.url, "error", server__state_dir=state), "error", "the row went back")["mend"]
        self.by_hand(mend)
        self.assertGreaterEqual(self.database.max_id("order"), 4)
        self.assertEqual(self.report(self.url, "warning", server__state_dir=state)["verdict"], "warning")
        self.database.sql("UPDATE leaf.leaf_alloc SET max_id = 777777777 WHERE biz_tag = 'order'")
        self.by_hand(mend)
        self.assertEqual(self.database.max_id("order"), 777777777, "a remedy that is run late lowers nothing")

    def test_another_server_behind_the_journal(self):
        server = self.mysql_leafd().start()
        state = server.settings["server.state_dir"]
        server.id("order")
        server.stop()
        other = MariaDb()
        self.addCleanup(other.remove)
        other.start()
        other.put("order", 100000)
        report = self.report(other.url(), "error", server__state_dir=state)  # there is no table of workers
        self.finding(report, "warning", "another server or file answers")

    def test_broken_workers(self):
        self.database.sql("INSERT INTO leaf.leafd_worker VALUES ('leaf', 3, 1, 'short', 'h:1 x', 5)")
        report = self.report(self.url, "error")
        self.assertIn("leafd_worker", self.finding(report, "error", "3", "workers")["found"])

    def test_cannot_be_reached_or_entered(self):
        report = self.report(f"mysql://leaf:{PASSWORD}@127.0.0.1:{free_port()}/leaf", "error")
        self.assertIn("cannot connect", self.finding(report, "error", "cannot connect", "store")["found"])
        wrong = json.dumps(self.report(self.url.replace(":leaf@", ":Geheim77@"), "error"))
        self.assertIn("Access denied", wrong)
        self.assertNotIn("Geheim77", wrong)
        report = self.report(self.url + "?ssl-mode=required", "error")
        self.assertIn("TLS", self.finding(report, "error", "TLS", "store")["found"])


class PostgresDoctorTest(DoctorCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.database = Postgres()
        cls.addClassCleanup(cls.database.remove)
        cls.database.start()

    def setUp(self):
        super().setUp()
        self.database.sql("DROP TABLE IF EXISTS leaf_alloc, leafd_worker", "leaf")
        self.database.create_table()
        self.database.put("order")
        self.make_workers()
        self.database.sql("GRANT INSERT, DELETE ON leaf_alloc TO leaf; GRANT SELECT, INSERT, UPDATE ON leafd_worker TO leaf", "leaf")
        self.url = self.database.url()

    def make_workers(self):
        done = subprocess.run([LEAFCTL, "store", "init", "--store", self.database.url("admin")], capture_output=True, text=True,
                              timeout=60 * TIME_FACTOR, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def by_hand(self, statements):
        for statement in statements.split(";"):
            if statement.strip():
                self.database.sql(statement, "leaf")

    def test_a_healthy_one_is_clean(self):
        report = self.report(self.url, "ok")
        self.assertEqual(report["store"]["durability"], "power")
        self.assertNotIn(f":{PASSWORD}@", json.dumps(report))

    def test_unlogged(self):
        self.database.sql("ALTER TABLE leaf_alloc SET UNLOGGED; ALTER TABLE leafd_worker SET UNLOGGED", "leaf")
        self.mended(self.url, "error", "is UNLOGGED", self.by_hand)
        self.assertEqual(self.mended(self.url, "error", "is not logged", self.by_hand)["verdict"], "ok")

    def test_types_and_key(self):
        self.database.sql("ALTER TABLE leaf_alloc ALTER COLUMN max_id TYPE numeric", "leaf")
        self.assertEqual(self.mended(self.url, "error", "ids need a bigint", self.by_hand)["verdict"], "ok")
        self.database.sql("ALTER TABLE leaf_alloc DROP CONSTRAINT leaf_alloc_pkey", "leaf")
        self.assertEqual(self.mended(self.url, "error", "no unique key on biz_tag", self.by_hand)["verdict"], "ok")
        for change, text in (("ALTER COLUMN step TYPE text", "the column step is text"), ("DROP COLUMN step", "has no column step")):
            self.database.sql("ALTER TABLE leaf_alloc " + change, "leaf")
            self.assertEqual(self.mended(self.url, "error", text, self.by_hand)["verdict"], "ok")
        for change, text in (("ALTER COLUMN limit_ms TYPE text", "limit_ms of \"leafd_worker\" is text"),
                             ("DROP CONSTRAINT leafd_worker_pkey", "has no primary key (cluster, worker)")):
            self.database.sql("ALTER TABLE leafd_worker " + change, "leaf")
            self.assertEqual(self.mended(self.url, "error", text, self.by_hand)["verdict"], "ok")

    def test_read_only_by_role_and_database(self):
        for who in ("ROLE leaf", "DATABASE leaf", "ROLE leaf IN DATABASE leaf"):
            self.database.sql(f"ALTER {who} SET default_transaction_read_only = on", "leaf")
            self.assertEqual(self.mended(self.url, "error", "the session is read-only",
                                         lambda mend: self.database.sql(mend, "leaf"))["verdict"], "ok")

    def test_privileges(self):
        self.database.sql("REVOKE ALL ON leaf_alloc, leafd_worker FROM leaf", "leaf")
        report = self.report(self.url, "error")
        for finding in report["findings"]:
            if finding["severity"] == "error":
                self.by_hand(finding["mend"])
        report = self.report(self.url, "warning")
        for privilege in ("INSERT", "DELETE"):
            self.by_hand(self.finding(report, "warning", f"may not {privilege} on")["mend"])
        self.report(self.url, "ok")

    def test_missing_tables(self):
        self.database.sql("DROP TABLE leaf_alloc, leafd_worker", "leaf")
        report = self.report(self.url, "error")
        for table in ("leaf_alloc", "leafd_worker"):
            self.by_hand(self.finding(report, "error", f'"{table}" does not exist')["mend"])
        self.database.sql("GRANT SELECT, INSERT, UPDATE, DELETE ON leaf_alloc, leafd_worker TO leaf", "leaf")
        self.report(self.url, "ok")

    def test_settings_of_the_server(self):
        for name, text in (("default_transaction_read_only", "the session is read-only"), ("fsync", "the store is only 'process'-durable")):
            self.database.set(name, "on" if name.startswith("default") else "off")
            self.mended(self.url, "error", text, self.by_hand)
            self.report(self.url, "ok")
        report = self.report(self.url, "error", store__min_durability="replicated")
        self.assertIn("synchronous_standby_names", self.finding(report, "error", "only 'power'-durable", "durability")["mend"])

    def test_rows(self):
        self.database.put("still", 5, 0)
        self.database.put("it''s", -7)
        report = self.report(self.url, "error")
        for text in ("has step 0", "has the negative max_id -7"):
            mend = self.finding(report, "error", text)["mend"]
            if UNKNOWN in mend:
                with self.assertRaises(AssertionError):
                    self.by_hand(mend)
            self.by_hand(mend.replace(UNKNOWN, "43"))
        self.report(self.url, "warning")
        self.database.sql("UPDATE leaf_alloc SET max_id = 5000 WHERE biz_tag = 'it''s'", "leaf")
        self.by_hand(mend.replace(UNKNOWN, "43"))
        self.assertEqual(self.database.max_id("it''s"), 5000, "a remedy that is run late lowers nothing")

    def test_clocks(self):
        clock = FakeClock(self.folder)
        self.wrapper = clock.wrapper
        for seconds, severity, text in ((0, "ok", "this host's clock is"), (-300, "warning", "behind the registry's"),
                                        (600, "warning", "ahead of the registry's"), (3600, "error", "ahead of the registry's")):
            clock.restore()
            clock.step(seconds)
            report = self.report(self.url, severity)
            self.finding(report, severity, text, "clock")


class OtherStoresDoctorTest(DoctorCase):
    def test_sqlite_is_only_read(self):
        path = self.folder + "/store/leafd.db"
        self.assertIn("mkdir -p", self.finding(self.report("sqlite:" + path, "error"), "error", "cannot be used")["mend"])
        os.makedirs(os.path.dirname(path))
        self.report("sqlite:" + path, self.fit(), store__min_durability="process")
        self.assertEqual(files(self.folder), {})
        server = self.start_leafd({"store.url": "sqlite:" + path, "store.min_durability": "process"})
        state = server.settings["server.state_dir"]
        server.put_tag("order")
        first = server.id("order")
        settings = {"server__state_dir": state, "store__min_durability": "process"}
        report = self.report("sqlite:" + path, self.fit(), **settings)
        self.finding(report, "ok", f"in use by process {server.child.pid}: leafd may be running", "store")
        self.assertEqual(report["store"]["identity"], server.status()["store"]["identity"])
        self.assertGreater(server.id("order"), first)
        server.journal_written()
        server.kill()  # its log stays
        before = without_index(files(self.folder))
        self.assertIn(path + "-wal", before)
        self.finding(self.report("sqlite:" + path, self.fit(), **settings), "ok", "1 tags", "rows")
        self.assertEqual(without_index(files(self.folder)), before)
        server.start()
        server.stop()
        before = without_index(files(self.folder))
        self.finding(self.report("sqlite:" + path, self.fit(), **settings), "ok", "it has a write-ahead log", "store")
        self.assertEqual(without_index(files(self.folder)), before)
        subprocess.run(["/usr/bin/python3", "-c", "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); "
                        "d.execute(\"UPDATE leaf_alloc SET max_id = 1\"); d.commit()", path], check=True)
        mend = self.finding(self.report("sqlite:" + path, "error", **settings), "error", "the row went back")["mend"]
        self.assertTrue(mend.startswith("UPDATE leaf_alloc SET max_id = "), mend)
        for held, after in ((1, None), (999999, 999999), ("'500'", None)):
            ends = subprocess.run(["/usr/bin/python3", "-c", "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); "
                                   f"d.execute(\"UPDATE leaf_alloc SET max_id = {held}\"); d.execute(sys.argv[2]); d.commit(); "
                                   "print(d.execute('SELECT max_id, typeof(max_id) FROM leaf_alloc').fetchone())", path, mend],
                                  check=True, capture_output=True, text=True).stdout.strip("()\n").split(", ")
            self.assertEqual(ends[1], "'integer'")
            self.assertGreaterEqual(int(ends[0]), after or first + 1)

    def test_a_file_that_is_no_database(self):
        path = self.write("leafd.db", "no database, but longer than a header would have to be" * 20)
        self.finding(self.report("sqlite:" + path, "error", store__min_durability="process"), "error", "file is not a database", "store")

    def test_a_state_folder_that_cannot_be(self):
        path = self.write("state", "a file")
        self.finding(self.report("memory:", "error", store__min_durability="volatile"), "error", f"cannot make {path}", "state")
        os.remove(path)
        os.mkdir(path)
        os.chmod(path, 0o777)
        mend = self.finding(self.report("memory:", "warning", store__min_durability="volatile"), "warning", "other users can write")["mend"]
        subprocess.run(mend, shell=True, check=True)
        self.report("memory:", "ok", store__min_durability="volatile")

    def fit(self):
        """A test's folder may be in memory, which a doctor warns of."""
        kind = subprocess.run(["stat", "-f", "-c", "%T", self.folder], capture_output=True, text=True, check=True).stdout.strip()
        return "warning" if kind in ("tmpfs", "ramfs") else "ok"

    @staticmethod
    def etcdctl(cluster):
        return {**environment(), "ETCDCTL_API": "3", "ETCDCTL_ENDPOINTS": f"127.0.0.1:{cluster.members[0].port}"}

    def test_etcd(self):
        cluster = Etcd()
        self.addCleanup(cluster.remove)
        cluster.start()
        cluster.put("order")
        self.assertEqual(self.report(cluster.url(), "ok")["store"]["durability"], "power")
        cluster.put("still", 1, 0)
        mend = self.finding(self.report(cluster.url(), "error"), "error", "has step 0")["mend"]
        subprocess.run(mend, shell=True, check=True, capture_output=True, env=self.etcdctl(cluster))
        self.report(cluster.url(), "ok")
        self.assertEqual(cluster.max_id("still"), 1)
        cluster.put("still", 5000, 10)
        subprocess.run(mend, shell=True, check=True, capture_output=True, env=self.etcdctl(cluster))
        self.assertEqual(cluster.max_id("still"), 5000, "a remedy that is run late lowers nothing")
        cluster.set(cluster.tag_key("broken"), '{"max_id":"2000","step":10')
        finding = self.finding(self.report(cluster.url(), "error"), "error", "broken", "rows")
        self.assertIn('{"max_id":"1001","step":1000}', finding["found"].replace("\\x22", '"'))  # the form that is wanted
        self.assertIn(UNKNOWN, finding["mend"])
        subprocess.run(finding["mend"], shell=True, check=True, capture_output=True, env=self.etcdctl(cluster))
        self.finding(self.report(cluster.url(), "error"), "error", "broken", "rows")  # as it stands it mends nothing
        subprocess.run(finding["mend"].replace(UNKNOWN, "2001"), shell=True, check=True, capture_output=True, env=self.etcdctl(cluster))
        self.report(cluster.url(), "ok")
        self.assertEqual(cluster.max_id("broken"), 2001)

    def test_zookeeper_and_fixed(self):
        ensemble = ZooKeeper()
        self.addCleanup(ensemble.remove)
        ensemble.start()
        url = ensemble.url()
        settings = {"snowflake__registry": url, "snowflake__identity": "192.0.2.7:8080"}
        report = self.report("memory:", "ok", store__min_durability="volatile", store__timeout="2900ms", **settings)
        self.finding(report, "ok", "can be used", "registry")
        dead = url.replace(str(ensemble.address.rpartition(":")[2]), str(free_port()))
        report = self.report("memory:", "error", store__min_durability="volatile", **{**settings, "snowflake__registry": dead})
        self.assertEqual(len([f for f in report["findings"] if f["severity"] == "error"]), 1)
        os.makedirs(self.folder + "/state")
        with open(self.folder + "/state/snowflake-worker-7", "w", encoding="ascii") as file:
            file.write("nonsense")
        report = self.report("memory:", "error", store__min_durability="volatile", snowflake__registry="fixed:7")
        self.finding(report, "error", "it is damaged, or not leafd's", "registry")

    def test_usage_and_configuration(self):
        self.assertEqual(subprocess.run([LEAFCTL, "doctor", "--frob"], capture_output=True, check=False).returncode, 2)
        done = self.call("--json", settings={"store.frob": "1"})
        self.assertEqual(done.returncode, 1)
        self.assertEqual([(f["severity"], f["check"]) for f in json.loads(done.stdout)["findings"]], [("error", "config")])


if __name__ == "__main__":
    unittest.main()
