"""B67: a host without a private address, with none at all, or with forty: leafd starts and mints, and
what it calls itself does not depend on them (sony/sonyflake #17)."""

import unittest

from leaftest import free_port
from leaftest.namespace import Namespace
from leaftest.rights import RightCase, mode, wait_serving, workers


def bridge(name, *addresses):
    return "\n".join([f"ip link add {name} type bridge", *(f"ip addr add {one} dev {name}" for one in addresses),
                      f"ip link set {name} up"])


HOSTS = {
    "carrier-grade address": bridge("eth0", "100.64.0.5/10"),
    "IPv6 only": bridge("eth0", "fd00::5/64"),
    "loopback only": "",
    "forty interfaces": "\n".join(bridge(f"eth{n}", f"10.{n}.0.1/16") for n in range(40)),
}


class AddressesTest(RightCase):
    def test_starts_on_each_host(self):
        names, ports = set(), (free_port(), free_port())
        for host, setup in HOSTS.items():
            with self.subTest(host):
                server = self.server()
                server.port, server.admin_port = ports
                server.settings["server.admin_listen"] = f"127.0.0.1:{server.admin_port}"
                namespace = Namespace(self, setup)
                namespace.start(server)
                worker = wait_serving(server) >> 12 & 1023
                self.assertEqual(mode(server)["state"], "ok")
                names.add(workers(server)[worker]["identity"])
                server.kill()
                namespace.close()
        self.assertEqual(len(names), 1, names)


if __name__ == "__main__":
    unittest.main()
