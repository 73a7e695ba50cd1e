"""The module's floor: what its tools are made of, put together when one of them is first called."""

from __future__ import annotations

from takeback.module import Host
from takeback_acts.rows.acting import Actor
from takeback_acts.rows.changing import Changer
from takeback_acts.rows.checking import Doctor
from takeback_acts.rows.connecting import Connector
from takeback_acts.rows.connections import Connections
from takeback_acts.rows.databases import Databases
from takeback_acts.rows.expiring import Expirer
from takeback_acts.rows.naming import Naming
from takeback_acts.rows.querying import Reader
from takeback_acts.rows.restoring import Restorer


class Floor:
    """The parts of the module, each of which knows the connections."""

    def __init__(self, host: Host, databases: Databases) -> None:
        self.connections = Connections(databases, host.settings)
        self.reader = Reader(self.connections)
        actor = Actor(self.connections, Naming(host, self.connections.settings))
        self.changer = Changer(self.connections, actor)
        self.connector = Connector(host, self.connections)
        self.restorer = Restorer(self.connections)
        self.expirer = Expirer(host, self.connections)
        self.doctor = Doctor(self.connections)
