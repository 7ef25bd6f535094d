"""End-to-end harness of leafd. A test file is a unittest program:

    PYTHONPATH=tests/harness/py LEAFD_BIN=... IDLOAD_BIN=... IDCHECK_BIN=... BUILD_DIR=... python3 FILE
"""

from .case import LeafdCase, MariaDbCase
from .etcd import Etcd, EtcdError, EtcdMember
from .faketime import HOUR, YEAR, FakeClock, MariaDbSnowflakeCase, SnowflakeCase
from .faultproxy import Control, FaultProxy
from .galera import Galera, GaleraNode
from .hacase import HaCase
from .haproxy import HaProxy
from .history import write_history
from .leafd import Leafd, Response, raw, raw_request, request, run_leafd
from .mariadb import LEAF_DDL, MariaDb
from .pgbouncer import PgBouncer
from .postgres import LEAF_POSTGRES_DDL, Postgres, PostgresPair
from .process import LONG, TIME_FACTOR, Child, can_connect, free_port, pick, wait_until
from .replication import MariaDbPair
from .switch import Switch
from .zookeeper import ZooKeeper

__all__ = ["HOUR", "LEAF_DDL", "LEAF_POSTGRES_DDL", "LONG", "TIME_FACTOR", "YEAR", "Child", "Control", "Etcd", "EtcdError",
           "EtcdMember", "FakeClock", "FaultProxy", "Galera", "GaleraNode", "HaCase", "HaProxy", "Leafd", "LeafdCase", "MariaDb",
           "MariaDbCase", "MariaDbPair", "MariaDbSnowflakeCase", "PgBouncer", "Postgres", "PostgresPair", "Response",
           "SnowflakeCase", "Switch", "ZooKeeper", "can_connect", "free_port", "pick", "raw", "raw_request", "request",
           "run_leafd", "wait_until", "write_history"]
