"""The way from one leafd to one node of its store, which can be broken in ways that fit every protocol."""

import asyncio

from leaftest import FaultProxy


class Wire(FaultProxy):
    """Between a leafd and `node`, anything with a port. What it does to answers needs no knowledge of the
    protocol: a piece that comes down is an answer, or a part of one."""

    def __init__(self, node, seed):
        super().__init__(node.port, mysql=False, seed=seed)
        self.node = node
        self.lag = 0.0        # most seconds that each piece is late, either way
        self.lose = 0         # so many answers more are lost, each with its connection
        self.cut = 0          # so many more are cut within, each with its connection
        self.lost = 0         # that befell so many

    def to(self, node):
        """Standing connections are reset, new ones go to the other node, as when an address moves."""
        self.node = node
        self.retarget(node.port)

    def heal(self):
        """Passes everything again. What stood frozen is reset: nobody would ever tell its ends."""
        self.lag, self.lose, self.cut = 0.0, 0, 0
        self.clear()
        self.listen()
        self.reset_all()

    async def _pass(self, connection, way, data):
        if self.lag:
            await asyncio.sleep(self._chance.random() * self.lag)
        if way == "down" and (self.lose or self.cut):
            await self._lose(connection, way, data)
        await super()._pass(connection, way, data)

    async def _lose(self, connection, way, data):
        self.lost += 1
        if self.lose:
            self.lose -= 1
        else:
            self.cut -= 1
            await self._forward(connection, way, data[:self._chance.randrange(len(data))])
        connection.reset()
        await self._until_ended(connection)
