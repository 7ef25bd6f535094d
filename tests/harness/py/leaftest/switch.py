"""What moves clients from one database server to another in a failover, as an address that moves does."""

from .faultproxy import FaultProxy


class Switch(FaultProxy):
    """Stands before `node`, anything with a port. to() moves it: standing connections are reset, new ones
    go to the other node. It breaks connections too, as any FaultProxy does."""

    def __init__(self, node, **options):
        super().__init__(node.port, **options)
        self.node = node

    def to(self, node):
        self.node = node
        self.retarget(node.port)
