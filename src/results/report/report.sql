-- What a report asks of a run database. Every table of the page is bounded.

-- :runs
-- All runs, as the table runs has them, and the averaged model's first row at
-- the target; ?1 is another one, or NULL, of the accuracy where ?2 is not 0.
SELECT r.*, CASE WHEN ?1 IS NULL THEN r.time_to_target_s ELSE hit.time_s END
    AS time_to_target_s,
  hit.step AS steps_to_target, hit.bytes_sent AS bytes_to_target
FROM runs r LEFT JOIN series hit ON hit.rowid = (
    SELECT s.rowid FROM series s
    WHERE s.run_id = r.run_id AND s.peer IS NULL AND CASE WHEN ?2
      THEN s.accuracy >= ?1 ELSE s.loss <= ifnull(?1, r.target_loss) END
    ORDER BY s.time_s LIMIT 1)
ORDER BY r.cell, r.run_id

-- :run.1
-- The one run of schema 1 or 2, which its summary tells of.
WITH told(key, value) AS (SELECT key, value FROM summary),
  facts(name, value) AS (SELECT key, value FROM run)
SELECT 1 AS run_id, 1 AS cell,
  (SELECT value FROM facts WHERE name = 'seed') AS seed,
  CASE (SELECT value FROM told WHERE key = 'completed')
    WHEN '1' THEN 'done' ELSE 'interrupted' END AS state,
  NULL AS problem,
  (SELECT value FROM told WHERE key = 'violations') AS violations,
  (SELECT value FROM told WHERE key = 'accuracy.averaged') AS accuracy,
  (SELECT value FROM told WHERE key = 'loss.averaged') AS loss,
  (SELECT min(time_s) FROM series WHERE peer IS NULL AND CASE WHEN ?2
    THEN accuracy >= ?1 ELSE loss <= ?1 END) AS time_to_target_s,
  (SELECT value FROM told WHERE key = 'steps') AS steps,
  (SELECT value FROM told WHERE key = 'bytes.sent') * 1.0 /
    (SELECT value FROM facts WHERE name = 'peers') AS bytes_mean,
  (SELECT value FROM told WHERE key = 'bytes.per_peer_max') AS bytes_max,
  (SELECT value FROM told WHERE key = 'consensus_distance')
    AS consensus_distance

-- :cells
SELECT cell, label, refused FROM cells ORDER BY cell

-- :cells.1
-- A database of one run is a cell of its own, named by experiment and world; of
-- a cluster by its peer, or by how many of its peers were joined.
SELECT 1, (SELECT value FROM run WHERE key = 'name') || ' ' ||
  (SELECT value FROM run WHERE key = 'world') ||
  ifnull(' ' || (SELECT value FROM run WHERE key = 'rank'), '') ||
  ifnull(', ' || (SELECT value FROM run WHERE key = 'databases'), ''), NULL

-- :settings
SELECT cell, key, value FROM settings ORDER BY cell, key

-- :table
-- How many ordinary tables have this name? A view could hold any query.
SELECT count(*) FROM sqlite_schema
WHERE type = 'table' AND name = ?1 AND sql NOT LIKE 'CREATE VIRTUAL%'

-- :plans
SELECT count(*) FROM run WHERE run_id = 0 AND key = 'seeds'

-- :facts
SELECT key, value FROM run LIMIT 200

-- :summary
SELECT key, value FROM summary LIMIT 200

-- :faults
SELECT happened_s AS time_s, fault AS kind, peer, other, factor
FROM faults ORDER BY happened_s LIMIT 10000

-- :faults.count
SELECT count(*) FROM faults

-- :verdicts
SELECT assertion AS text, held, value, at_s AS time_s FROM verdicts LIMIT 100

-- :outcomes
SELECT name AS kind, count(*) AS count, sum(sum) AS sum
FROM marks JOIN mark_kinds USING(kind) GROUP BY kind ORDER BY kind LIMIT 100

-- :identities
-- What the others made of each member's models: a guard's distances, what was
-- refused unseen by it, and exchanges that held their place until given up.
SELECT other AS peer, count(*) FILTER (WHERE name = 'clipped') AS clipped,
  avg(value) FILTER (WHERE name = 'clipped') / 1000 AS let_in,
  avg(sum) FILTER (WHERE name = 'clipped') AS clipped_from,
  count(*) FILTER (WHERE name = 'rejected') AS rejected,
  max(sum) FILTER (WHERE name = 'rejected') AS rejected_at,
  count(*) FILTER (WHERE name IN ('gated', 'bad')) AS refused,
  count(*) FILTER (WHERE name IN ('failed', 'torn')) AS held
FROM marks JOIN mark_kinds USING(kind)
WHERE other IS NOT NULL AND name IN ('clipped', 'rejected', 'gated', 'bad',
  'failed', 'torn')
GROUP BY other ORDER BY other LIMIT 500

-- :figure
-- Of one run the averaged model's rows, in the order of time.
SELECT time_s{series} FROM series WHERE run_id = ?1 AND peer IS NULL
ORDER BY time_s, step LIMIT ?2

-- :events
-- Trace events worth a line each; the others are counted.
SELECT time_s, peer, name AS kind, other, initiator, incarnation, counter, sum
FROM marks JOIN mark_kinds USING(kind)
WHERE name IN ('undone', 'torn', 'adopted', 'bad', 'gated', 'rejected', 'nonfinite',
  'finished')
ORDER BY time_s LIMIT 500

-- :events.count
SELECT count(*) FROM marks JOIN mark_kinds USING(kind)
WHERE name IN ('undone', 'torn', 'adopted', 'bad', 'gated', 'rejected', 'nonfinite',
  'finished')

-- :last
SELECT peer, step, samples, loss, accuracy, attempts, done, failed, refused,
  skipped, torn, bytes_sent, bytes_received, waiting_s, max(time_s) AS time_s
FROM series WHERE peer IS NOT NULL GROUP BY peer ORDER BY peer LIMIT 500

-- :speed
-- Rates of each peer over all its rows, as the summary has them: samples over
-- the time that they took. A row that says more samples weighs more, one without
-- any nothing.
WITH columns AS (SELECT peer, time_s{series} FROM series),
  counted AS (
    SELECT *, max(0, samples - lag(samples, 1, 0)
      OVER (PARTITION BY peer ORDER BY time_s)) AS count
    FROM columns WHERE memory_bytes IS NOT NULL)
SELECT peer,
  sum(count) FILTER (WHERE samples_per_s > 0) /
    sum(count / nullif(samples_per_s, 0)) AS samples_per_s,
  sum(count) FILTER (WHERE tokens_per_s > 0) /
    sum(count / nullif(tokens_per_s, 0)) AS tokens_per_s,
  sum(count) FILTER (WHERE flop_per_s > 0) /
    sum(count / nullif(flop_per_s, 0)) AS flop_per_s,
  sum(count) FILTER (WHERE mfu > 0) / sum(count / nullif(mfu, 0)) AS mfu,
  max(data_wait_s) AS data_wait_s,
  last.exchange_overlap AS exchange_overlap,
  max(memory_bytes) AS memory_bytes
FROM counted JOIN (SELECT peer, exchange_overlap, max(time_s) FROM counted
  GROUP BY peer) AS last USING(peer)
GROUP BY peer ORDER BY peer LIMIT 500

-- :peers.count
SELECT count(DISTINCT peer) FROM series

-- :series.count
-- Of the first ?1 peers by rank, and of the averaged model.
SELECT count(*) FROM series WHERE peer IS NULL OR peer IN (
  SELECT DISTINCT peer FROM series WHERE peer IS NOT NULL ORDER BY peer LIMIT ?1)

-- :series
-- The same rows, thinned: of each peer every ?2th, the first and the last, ?3 in
-- all; in the order of time, so that what is new stands at their end.
WITH columns AS (SELECT peer, time_s{series} FROM series),
  numbered AS (
  SELECT *, row_number() OVER way AS place,
      count(*) OVER (PARTITION BY peer) AS count_,
      (training_s - lag(training_s) OVER way) /
        nullif(max(0, step - lag(step) OVER way), 0) AS step_s
  FROM columns WHERE peer IS NULL OR peer IN (
    SELECT DISTINCT peer FROM series WHERE peer IS NOT NULL ORDER BY peer
    LIMIT ?1)
  WINDOW way AS (PARTITION BY peer ORDER BY time_s, step))
SELECT ifnull(peer, -1) AS peer, time_s, step, samples{series.charts}, step_s
FROM numbered WHERE place % ?2 = 0 OR place = 1 OR place = count_
ORDER BY time_s, step, 1 LIMIT ?3

-- :spread.count
SELECT count(*) FROM series WHERE peer IS NOT NULL

-- :spread
-- All rows of every ?1th peer as time goes, each with its peer's place.
WITH columns AS (SELECT peer, time_s{series} FROM series
    WHERE peer IS NOT NULL),
  named AS (
  SELECT *, dense_rank() OVER (ORDER BY peer) - 1 AS rank_,
      (training_s - lag(training_s) OVER way) /
        nullif(max(0, step - lag(step) OVER way), 0) AS step_s
  FROM columns WINDOW way AS (PARTITION BY peer ORDER BY time_s, step))
SELECT rank_ / ?1 AS place, time_s, step, samples{series.charts}, step_s
FROM named WHERE rank_ % ?1 = 0 ORDER BY time_s, step

-- :spread.mixed
-- A loss beside an accuracy is of the test set (a lab's last row), another
-- quantity than that of the batches in the rows before it. Are there such?
SELECT EXISTS(SELECT 1 FROM series
  WHERE peer IS NOT NULL AND accuracy IS NULL AND loss IS NOT NULL)

-- :ranks
-- Peers by rank, whether or not they left a row.
SELECT min(10000000, max(
  ifnull((SELECT max(peer) + 1 FROM series WHERE peer < 10000000), 0),
  ifnull((SELECT max(CAST(value AS INTEGER)) FROM run WHERE key = 'peers'), 0)))

-- :nodes
-- Of ?1 ranks in ?2 groups of neighbours, at the end of each of ?3 equal slots of
-- time that has rows: mean square of the distance from the mean, and what was
-- counted so far.
WITH ended(at) AS (SELECT max(1e-9, max(time_s)) FROM series),
  timed AS (
  SELECT max(0, min(?3 - 1, CAST(time_s * ?3 / at AS INTEGER))) AS slot, *
  FROM series, ended WHERE peer BETWEEN 0 AND ?1 - 1),
  latest AS (SELECT slot, peer, bytes_sent, done, failed, max(time_s)
    FROM timed GROUP BY 1, 2),
  apart AS (SELECT slot, peer, consensus_distance AS distance, max(time_s)
    FROM timed WHERE consensus_distance IS NOT NULL GROUP BY 1, 2)
SELECT slot, CAST(peer * ?2 / ?1 AS INTEGER) AS node,
  avg(distance * distance) AS square,
  sum(bytes_sent) AS bytes, sum(done) AS done, sum(failed) AS failed
FROM latest LEFT JOIN apart USING(slot, peer)
GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 100000

-- :traffic
-- Exchanges of such groups in such slots, as the first of each pair saw them.
WITH ended(at) AS (SELECT max(1e-9, max(time_s)) FROM series)
SELECT max(0, min(?3 - 1, CAST(time_s * ?3 / at AS INTEGER))) AS slot,
  CAST(peer * ?2 / ?1 AS INTEGER) AS node,
  CAST(other * ?2 / ?1 AS INTEGER) AS towards,
  count(*) FILTER (WHERE name = 'done') AS done,
  count(*) FILTER (WHERE name <> 'done') AS failed
FROM marks JOIN mark_kinds USING(kind), ended
WHERE name IN ('done', 'failed', 'torn')
  AND peer BETWEEN 0 AND ?1 - 1 AND other BETWEEN 0 AND ?1 - 1
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT 100000

-- :pairs
-- The same of single peers in each of ?3 slots, and as slot -1 of the whole run:
-- the ?2 of each that have most; of equal ones some of every rank.
WITH ended(at) AS (SELECT max(1e-9, max(time_s)) FROM series),
  counted AS (
  SELECT max(0, min(?3 - 1, CAST(time_s * ?3 / at AS INTEGER))) AS slot,
    CAST(peer AS INTEGER) AS node, CAST(other AS INTEGER) AS towards,
    count(*) FILTER (WHERE name = 'done') AS done,
    count(*) FILTER (WHERE name <> 'done') AS failed
  FROM marks JOIN mark_kinds USING(kind), ended
  WHERE name IN ('done', 'failed', 'torn')
    AND peer BETWEEN 0 AND ?1 - 1 AND other BETWEEN 0 AND ?1 - 1
  GROUP BY 1, 2, 3),
  linked AS (SELECT * FROM counted UNION ALL
  SELECT -1, node, towards, sum(done), sum(failed) FROM counted GROUP BY 2, 3),
  placed AS (SELECT *, row_number() OVER (PARTITION BY slot
    ORDER BY failed DESC, done DESC,
      (node * 7919 + towards * 104729) % 65521, node, towards) AS place
  FROM linked)
SELECT slot, node, towards, done, failed FROM placed WHERE place <= ?2

-- :places
-- Where the zones of a run are, by number from 0 on (kith/zone_map.h).
SELECT place AS node, CASE WHEN typeof(name) = 'text' THEN substr(name, 1, 80)
    ELSE 'place ' || place END AS name,
  max(1, CAST(peers AS INTEGER)) AS peers, x, y FROM places
WHERE place BETWEEN 0 AND 63 AND typeof(place) = 'integer'
ORDER BY place LIMIT 64

-- :places.count
-- None, of a file of anybody's, where a number is missing or there twice.
SELECT CASE WHEN count(*) = count(DISTINCT place) AND count(*) = max(place) + 1
    THEN count(*) ELSE 0 END
FROM places WHERE place BETWEEN 0 AND 63 AND typeof(place) = 'integer'

-- :zones
SELECT zone, place AS node, first FROM zones ORDER BY zone LIMIT 4096

-- :zone_slot
-- Nanoseconds of a slot of their traffic; 0: it is not said.
SELECT CAST(max(0, min(1e18, ifnull(max(value * 1e9), 0))) AS INTEGER) FROM run
WHERE key = 'zone_slot_s'

-- :zone_slots
-- Of a file of anybody's, too, from 1 on.
SELECT max(1, min(1000000, ifnull(max(slot), 0) + 1)) FROM zone_traffic

-- :nodes.places
-- As nodes, of ?1 ranks in places, at the end of ?2 slots of ?3 ns.
WITH known AS (SELECT zone, place, first FROM zones ORDER BY zone LIMIT 4096),
  counted(zones, by_rank) AS (
  SELECT count(*), max(first) IS NOT NULL FROM known),
  rows_of(peer) AS (
  SELECT DISTINCT peer FROM series WHERE peer BETWEEN 0 AND ?1 - 1),
  begun(peer, zone) AS (
  SELECT peer, max(zone) OVER (ORDER BY at, peer IS NOT NULL)
  FROM (SELECT first AS at, zone, NULL AS peer FROM known WHERE first >= 0
    UNION ALL SELECT peer, NULL, peer FROM rows_of)),
  zoned AS (SELECT peer, CASE WHEN by_rank THEN zone ELSE peer % zones END AS zone
  FROM begun, counted WHERE peer IS NOT NULL),
  timed AS (
  SELECT max(0, min(?2 - 1, CAST(time_s * 1e9 / ?3 AS INTEGER))) AS slot, *
  FROM series WHERE peer BETWEEN 0 AND ?1 - 1),
  latest AS (SELECT slot, peer, bytes_sent, done, failed, max(time_s)
    FROM timed GROUP BY 1, 2),
  apart AS (SELECT slot, peer, consensus_distance AS distance, max(time_s)
    FROM timed WHERE consensus_distance IS NOT NULL GROUP BY 1, 2)
SELECT slot, place AS node, avg(distance * distance) AS square,
  CAST(total(bytes_sent) AS INTEGER) AS bytes,
  CAST(total(done) AS INTEGER) AS done,
  CAST(total(failed) AS INTEGER) AS failed
FROM latest LEFT JOIN apart USING(slot, peer) JOIN zoned USING(peer)
  JOIN known USING(zone)
GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 100000

-- :traffic.places
-- What all peers of a place sent to those of another, ?1 slots as one. total():
-- a sum of anybody's numbers may be more than an integer has room for.
SELECT slot / ?1 AS slot, place AS node, other AS towards,
  CAST(total(done) AS INTEGER) AS done,
  CAST(total(failed) AS INTEGER) AS failed,
  CAST(total(bytes) AS INTEGER) AS bytes
FROM zone_traffic
WHERE slot >= 0 AND place BETWEEN 0 AND 63 AND other BETWEEN 0 AND 63
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT 100000

-- :drawn
-- The first ?1 cells that have something to draw.
SELECT cell, label FROM cells
WHERE cell IN (SELECT cell FROM runs WHERE state IN ('done', 'diverged'))
ORDER BY cell LIMIT ?1

-- :drawn.count
SELECT count(*) FROM cells
WHERE cell IN (SELECT cell FROM runs WHERE state IN ('done', 'diverged'))

-- :cell.facts
WITH first(id) AS (SELECT min(run_id) FROM runs
  WHERE cell = ?1 AND state IN ('done', 'diverged'))
SELECT key, value FROM run, first WHERE run_id = id UNION ALL
SELECT key, value FROM summary, first
WHERE run_id = id AND key IN ('train_rows', 'test_rows', 'curve.rows')
LIMIT 200

-- :cell.seeds
SELECT run_id, seed FROM runs WHERE cell = ?1 ORDER BY run_id LIMIT 64

-- :cell.series.count
SELECT count(*) FROM series JOIN runs USING(run_id)
WHERE cell = ?1 AND peer IS NULL

-- :cell.series
-- Each seed's averaged model stands where a run has its peers.
WITH columns AS (SELECT run_id, time_s{series} FROM series
    WHERE peer IS NULL AND run_id IN (SELECT run_id FROM runs WHERE cell = ?1)),
  numbered AS (
  SELECT *, row_number() OVER way AS place,
      count(*) OVER (PARTITION BY run_id) AS count_,
      (training_s - lag(training_s) OVER way) /
        nullif(max(0, step - lag(step) OVER way), 0) AS step_s
  FROM columns WINDOW way AS (PARTITION BY run_id ORDER BY time_s, step))
SELECT run_id AS peer, time_s, step, samples{series.charts}, step_s
FROM numbered WHERE place % ?2 = 0 OR place = 1 OR place = count_
ORDER BY time_s, step, 1 LIMIT ?3

-- :points
SELECT run_id, peer, time_s{series.csv} FROM series ORDER BY 1, peer, time_s

-- :points.1
SELECT 1 AS run_id, peer, time_s{series.csv} FROM series
ORDER BY 1, peer, time_s
