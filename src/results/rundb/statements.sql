-- What a run database is written with; ?1 is the run.

-- :row
INSERT INTO series VALUES(?, ?, ?{series.values})
-- :event
INSERT INTO marks VALUES
(?1, ?, ?, ?, ?, ?, ?, ?, ?, ?)
-- :events
INSERT INTO marks VALUES {events}
-- :fault
INSERT INTO faults VALUES(?, ?, ?, ?, ?, ?, ?, ?)
-- :verdict
INSERT INTO verdicts VALUES(?, ?, ?, ?, ?)
-- :summary
INSERT OR REPLACE INTO summary VALUES(?, ?, ?)
-- :run
INSERT OR REPLACE INTO run VALUES(?, ?, ?)
-- :finish
UPDATE runs SET (run_id, state{results}) = (?, ?{results.values})
WHERE run_id = ?1
-- :reached
-- When the averaged model came to the target loss.
SELECT min(time_s) FROM series WHERE run_id = ? AND peer IS NULL AND loss <= ?
-- :journal
INSERT INTO journal VALUES(?, ?, ?, ?, ?)
-- :model
INSERT INTO models VALUES(?, ?, ?, ?, ?, ?, ?, ?)
-- :place
INSERT INTO places VALUES(?, ?, ?, ?, ?, ?)
-- :zone
INSERT INTO zones VALUES(?, ?, ?, ?)
-- :zone_traffic
INSERT INTO zone_traffic VALUES(?, ?, ?, ?, ?, ?, ?)
-- :back
-- The rows that a run goes on from, oldest first.
SELECT peer, time_s{series} FROM series ORDER BY rowid
-- :take
UPDATE main.runs SET (state, problem{results}) =
  (SELECT state, NULL{results} FROM part.runs WHERE run_id = ?1)
WHERE run_id = ?1
