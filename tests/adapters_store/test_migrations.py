"""Published migrations are history: files of that schema exist, so their text never changes."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from adapters_store.sqlite import migrate

PUBLISHED = {
    1: "e993b0c18a131eca238fac837cb47abeff098f3d429c95455217064579992c17",
    2: "d9dcd8ac848ab3d1459e37d8102391c3e3abe822e8fa2bdf0b25276848ffc335",
    3: "50427c4bb913e218a1c4b216245d0a94e778112deccf42eef3bc7fc3eacf3716",
    4: "0711dc56b178fa03c71102c190f371e01237d030bf685dceed8c28bb3e438698",
    5: "7f71faaa9a6423cbec338ae4be7e50012758830e52c1a947ac4493021671768b",
    6: "c488f8af9b2f2f0309f976c3147f49cca52047a85a4102c793e62a109abe0663",
    7: "02d5f1b63e18e74cc6ac6e0d6715ae0ff630a9ca4213e7fb0bd7817ddacea6e3",
    8: "db3e890dd94221fce8fb8bdf38d9c463623e880891eb9090fd990a0cb3cf1d58",
    9: "591855b13a12210eb88c72e61db185c2794e90721a8daf2c9181cb8a30881256",
    10: "16c563041417cd377b7875d6889476045522a2743fdae3cfa1f3e48110314fab",
    11: "5f974fde81d4a4880c21003c662c47066665a06d00d8d5f0d1a9c24014065a6e",
    12: "36e0059f4c3be98b06cdb35c0ad67a905fa5d11faa815d4dc54f676301b1585c",
    13: "744795a6dfc5fd3f0ddeb91339557607d233fe8fe79e7193c7b7b3d98e9c18bd",
    14: "c783ae4cca64191a9d7892226fc3aa82f2d87ad6a04820abbacb0e3155d63f16",
    15: "87da0b9f534e2176b13e1e87350420e754facda8e6c70e71bc8e09a2c632cf7a",
    17: "b1a5147cce84154bcce8e865d1360de46196b1f009319f6587a4d69ad4c6b988",
    16: "d8d9c7c7a5d26b6d2e33fa3dcf4290f2475455d7b923cc5c6798e40eb7e918e7",
    18: "be43b7ce3cd5249c60224ab2cdc3d835933a3c95da4f2f1fb23162d3a2a85dd1",
    19: "e13dc8789ee2b7450bb5a8f66dccb933925439eecfcb930f59677f8b7cbd6577",
    20: "e9d9e2e74aba847cb45fa0f7ebd47217fb2bbaa908c309259f6b2dfbfa389aa5",
    21: "9953209d36dddfec11706a5d037158fad18e6bb21ae34da3253887d355de90fc",
    22: "2d01e8d74b13c379a0f75a645aba9dcea0e304af647b4146f3fbaf36b7f7173f",
    23: "bf57acb99c1914b5356d0c0216b11f64133abd2803253b5b2603668e91d10be5",
    24: "7bf9c50923b1d09d0d87ce6c1bccf04ddb35f011f0417bc797dbc3afa673ab71",
    25: "08d376431907b9a5dcf8e662c74f6cba4a7901cb86df05f327b5a20281b62a95",
    26: "790cdd31b8701ff9c3ed973c2960fcdc60d067f8b2c49341cecda94c9cdcb1b9",
    28: "7e1f92c51334486758a9f77f448898a8b179ff636c524b80171ae421d5880da3",
    27: "ac882dad0bc4e17b48963d67fd3fface02740dafc2f7a84edc4be775a7948be6",
    29: "82d0a818f19da0b6393fa89bc656dafd707b86157dc16a3851dccdf557a5e30f",
    30: "f8e8a26d4434d2e19553d9a7d86390b2a4bf1ad372daebe81b0fbe52e478cdd6",
    31: "dec5543422a3a59180cd02c8a03ff4d31a8f11a4cf2e9f7e964bd978cd2a99d5",
    32: "90766c04b97d36c354f47a6f5a9c9a32ee339b741b7f316ced93d75e0f9884b5",
    33: "c4348ba06ab2202f5b80b2778d7347566d1c00b6bed47888e3be142ee0cd8145",
}
"""The SHA-256 of each migration by its number, written down when it lands."""

FOLDER = Path(migrate.__file__).parent / "migrations"


def test_executions_of_before_get_their_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Migration 25 adds up what steps say; an unknown price stays unknown, kept results are not."""
    path, real = tmp_path / "wfcore.db", migrate.migrations
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "migrations", lambda: [one for one in real() if one[0] < 25])
        migrate.prepare(path)
    spent = {
        "e_priced": ['"0.25"', '"0.000000000001"'],
        "e_unknown": ['"1"', "null"],
        "e_free": ['"0"'],
        "e_none": [],
    }
    with closing(sqlite3.connect(path)) as database, database:
        for id, costs in spent.items():
            database.execute(
                """INSERT INTO executions (id, version, status, accepted_at, owner_id, workflow_id,
                masked, fence, body) VALUES (?, 1, 'FAILED', 7, 'acc_1', 'wf_1', 0, 0, '{}')""",
                (id,),
            )
            usages = [f'{{"cost_usd":{cost}}}' for cost in costs]
            bodies = [f'{{"started_at":7,"usage":{usage}}}' for usage in (*usages, "null")]
            bodies.append('{"started_at":6,"usage":{"cost_usd":"9"}}')
            database.executemany(
                "INSERT INTO step_results VALUES (?, ?, ?, 'null', NULL)",
                [(id, place, body) for place, body in enumerate(bodies)],
            )
    migrate.prepare(path)
    with closing(sqlite3.connect(path)) as database:
        found = dict(database.execute("SELECT id, cost FROM executions"))
    assert found == {
        "e_priced": 250_000_000_001,
        "e_unknown": -1,
        "e_free": None,
        "e_none": None,
    }


def test_step_results_of_before_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Migration 33 copies every row as it is, and gives each a rowid."""
    path, real = tmp_path / "wfcore.db", migrate.migrations
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "migrations", lambda: [one for one in real() if one[0] < 33])
        migrate.prepare(path)
    rows = [("e2", 0, "{}", "null", None), ("e1", 1, '{"a":1}', "~x", "[]"), ("e1", 0, "", "1", "")]
    with closing(sqlite3.connect(path)) as database, database:
        database.executemany("INSERT INTO step_results VALUES (?, ?, ?, ?, ?)", rows)
    migrate.prepare(path)
    with closing(sqlite3.connect(path)) as database:
        found = database.execute("SELECT * FROM step_results ORDER BY rowid").fetchall()
    assert found == sorted(rows, key=lambda row: row[:2])


def digests() -> dict[int, str]:
    """The SHA-256 of every migration there is, by its number."""
    return {
        int(path.name[:4]): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(FOLDER.glob("*.sql"))
    }


def test_a_published_migration_never_changes() -> None:
    """A database that has run a migration does not run it again, so a changed text misses it."""
    found = digests()
    changed = [number for number, digest in PUBLISHED.items() if found.get(number) != digest]
    assert not changed, f"migrations {changed} are published: restore them and add a new one"


def test_every_migration_has_its_digest() -> None:
    """What is not written down could change without anybody noticing."""
    new = {number: digest for number, digest in digests().items() if number not in PUBLISHED}
    lines = "".join(f'\n    {number}: "{digest}",' for number, digest in new.items())
    assert not new, f"add to PUBLISHED in {Path(__file__).name}:{lines}"


def test_migrations_are_numbered_without_gaps() -> None:
    """Two migrations of one number, or one that comes late, would be skipped in some files."""
    numbers = [number for number, _ in migrate.migrations()]
    assert numbers == list(range(1, len(numbers) + 1))
