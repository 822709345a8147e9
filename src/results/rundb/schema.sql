-- The tables of a run database, KITH_RUNDB_SCHEMA_VERSION (kith/series.h). Times
-- are seconds since the start of the run, NULL is "not measured", peer NULL is
-- the averaged model.
--
-- One file holds one run, run_id 1, or the many of a sweep. There run_id 0 of
-- the table run says what all have in common, and settings in what the cells
-- differ.

-- :tables
CREATE TABLE runs(
  run_id INTEGER PRIMARY KEY, cell INTEGER NOT NULL, seed INTEGER NOT NULL,
  state TEXT NOT NULL, problem TEXT{results.types});
CREATE TABLE cells(
  cell INTEGER PRIMARY KEY, label TEXT NOT NULL, path TEXT, seed INTEGER,
  experiment TEXT, refused TEXT);
CREATE TABLE settings(
  cell INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY(cell, key)) WITHOUT ROWID;
CREATE TABLE run(
  run_id INTEGER NOT NULL, key TEXT NOT NULL, value,
  PRIMARY KEY(run_id, key)) WITHOUT ROWID;
CREATE TABLE series(
  run_id INTEGER NOT NULL, peer INTEGER, time_s REAL NOT NULL{series.types});
CREATE TABLE mark_kinds(kind INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE marks(
  run_id INTEGER NOT NULL, peer INTEGER NOT NULL, time_s REAL NOT NULL,
  kind INTEGER NOT NULL, other INTEGER, initiator INTEGER NOT NULL,
  incarnation INTEGER NOT NULL, counter INTEGER NOT NULL,
  value INTEGER NOT NULL, sum REAL);
CREATE TABLE faults(
  run_id INTEGER NOT NULL, at_s REAL NOT NULL, happened_s REAL NOT NULL,
  fault TEXT NOT NULL, peer INTEGER NOT NULL, other INTEGER, factor REAL,
  statement INTEGER);
CREATE TABLE verdicts(
  run_id INTEGER NOT NULL, assertion TEXT NOT NULL, held INTEGER NOT NULL,
  value REAL, at_s REAL);
CREATE TABLE summary(
  run_id INTEGER NOT NULL, key TEXT NOT NULL, value,
  PRIMARY KEY(run_id, key)) WITHOUT ROWID;
CREATE VIEW peers AS
  SELECT run_id, peer, max(time_s) AS time_s{series} FROM series
  WHERE peer IS NOT NULL GROUP BY run_id, peer;
CREATE VIEW exchanges AS
  SELECT m.run_id, m.time_s, m.peer, k.name AS what, m.other, m.initiator,
    m.incarnation, m.counter, m.value, m.sum
  FROM marks m JOIN mark_kinds k USING(kind)
  WHERE k.name IN ('opened','refused','serving','merged','done', 'failed',
    'undone','torn','adopted','split');

-- :indexes
-- Where there are many runs, each is looked up.
CREATE INDEX series_run ON series(run_id, peer);
CREATE INDEX marks_run ON marks(run_id);

-- :zone_map
-- Of a run of many peers in zones (kith/zone_map.h), and there alone; as for a
-- journal the schema's version stands. Where places are, which of them a zone is
-- part of and its first rank (NULL: peer i is in zone i mod their number), and
-- what all peers of one sent to another in slots of zone_slot_s, a fact of the
-- run. x and y NULL: nobody knows where.
CREATE TABLE places(
  run_id INTEGER NOT NULL, place INTEGER NOT NULL, name TEXT NOT NULL,
  peers INTEGER NOT NULL, x REAL, y REAL,
  PRIMARY KEY(run_id, place)) WITHOUT ROWID;
CREATE TABLE zones(
  run_id INTEGER NOT NULL, zone INTEGER NOT NULL, place INTEGER NOT NULL,
  first INTEGER, PRIMARY KEY(run_id, zone)) WITHOUT ROWID;
CREATE TABLE zone_traffic(
  run_id INTEGER NOT NULL, slot INTEGER NOT NULL, place INTEGER NOT NULL,
  other INTEGER NOT NULL, done INTEGER NOT NULL, failed INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY(run_id, slot, place, other)) WITHOUT ROWID;

-- :journal
-- Of a recorded run, and there alone: kith/journal.h. The schema's version
-- stands, for no reader looks at tables that it does not know. peer NULL in
-- models: the average; digest 0, model NULL: not kept.
CREATE TABLE journal(
  run_id INTEGER NOT NULL, peer INTEGER NOT NULL, incarnation INTEGER NOT NULL,
  part INTEGER NOT NULL, bytes BLOB NOT NULL,
  PRIMARY KEY(run_id, peer, incarnation, part)) WITHOUT ROWID;
CREATE TABLE models(
  run_id INTEGER NOT NULL, peer INTEGER, step INTEGER NOT NULL, loss REAL,
  accuracy REAL, dim INTEGER NOT NULL, digest INTEGER NOT NULL, model BLOB);
