"""Any sequence of keeping, sweeping, closing, crashing and losing indexes, against a dict of what must be."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from takeback_acts.files.packs.keeping import Lease
from takeback_acts.files.packs.settings import PackSettings
from takeback_acts.files.packs.vault import Vault

NUMBERS = st.integers(0, 30)
SIZES = st.sampled_from([0, 1, 40, 200, 299, 300, 301, 900])


class Packs(RuleBasedStateMachine):
    """`live` is what must be there, by digest; `known` is everything that ever was."""

    @initialize(compress=st.booleans(), segment=st.sampled_from([700, 1500, 1 << 20]))
    def begin(self, compress, segment):
        self.top = Path(tempfile.mkdtemp())
        self.folder = self.top / "packs"
        self.settings = PackSettings(small=300, segment=segment, records=7, compress=compress)
        self.now = 1_700_000_000
        self.live: dict[str, bytes] = {}
        self.known: dict[str, bytes] = {}
        self._open()

    def _open(self):
        self.vault = Vault(self.folder, self.settings, lambda: self.now)
        self.vault.open()

    def teardown(self):
        if hasattr(self, "vault"):
            self.vault.close()
            shutil.rmtree(self.top)

    @rule(numbers=st.lists(NUMBERS, max_size=8), size=SIZES)
    def keep(self, numbers, size):
        data = [(b"%02d" % number * size)[:size] for number in numbers]
        with Lease(self.vault, "mcp:agent:juno") as lease:
            digests = lease.keep_all(data)
            lease.settle()
        kept = dict(zip(digests, data, strict=True))
        self.live |= kept
        self.known |= kept

    @rule(numbers=st.sets(NUMBERS), share=st.sampled_from([0.0, 0.5, 1.0]), grace=st.sampled_from([0, 1000]))
    def sweep(self, numbers, share, grace):
        self.live = {digest: data for n, (digest, data) in enumerate(self.live.items()) if n not in numbers}
        found = self.vault.sweep(self.live, self.now + 1, grace, dry_run=False, share=share)
        assert found.missing == 0
        stats = self.vault.stats()
        assert stats.blobs == found.kept
        if grace == 0:
            assert found.kept == len(self.live)
        if share == 1.0 and grace == 0:
            assert stats.bytes - sum(stats.owners.values()) <= 56 * stats.segments

    @rule(seconds=st.integers(1, 2000))
    def wait(self, seconds):
        self.now += seconds

    @rule()
    def reopen(self):
        before = self.vault.stats()
        self.vault.close()
        self._open()
        assert self.vault.stats() == before

    @rule(data=st.data())
    def crash(self, data):
        """What isn't synced is torn off, or something else lies there."""
        copy = self.top / "copy"
        self.vault._upkeep.submit(lambda: None).result()  # a file that is renamed meanwhile can't be copied
        shutil.copytree(self.folder, copy)
        self.vault.close()
        shutil.rmtree(self.folder)
        copy.rename(self.folder)
        tail = data.draw(st.one_of(st.just(b""), st.binary(max_size=300), st.just(bytes(200))))
        last = max(self.folder.glob("*.pack"), default=None)
        if last is not None and not last.with_suffix(".idx").exists():
            with last.open("ab") as file:
                file.write(tail)
        self._open()

    @rule(which=st.sampled_from([".idx", ".run", ".dead", ".*"]))
    def lose(self, which):
        self.vault.close()
        for path in self.folder.glob("*" + which):
            if path.suffix != ".pack":
                path.unlink()
        self._open()
        # What was dropped counts as kept again; a large one's file is gone all the same until it is swept.
        assert self.vault.sweep(self.live, self.now + 1, 0, dry_run=False, share=0.5).missing == 0

    @invariant()
    def everything_live_is_there(self):
        if not hasattr(self, "vault"):
            return
        for digest, data in self.live.items():
            assert self.vault.reader.read(digest) == data
        for digest, data in self.known.items():
            assert not self.vault.present(bytes.fromhex(digest)) or self.vault.reader.read(digest) == data

    @invariant()
    def what_it_takes_is_what_lies_on_disk(self):
        if hasattr(self, "vault"):
            large = sum(path.stat().st_size for path in self.folder.glob("large/*/*"))
            packs = sum(path.stat().st_size for path in self.folder.glob("*.pack"))
            assert self.vault.stats().bytes == large + packs


TestPacks = Packs.TestCase
TestPacks.settings = settings(max_examples=25, stateful_step_count=20)
