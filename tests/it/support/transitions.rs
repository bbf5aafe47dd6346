//! Records every transition of every run by a database trigger, and finds the illegal ones.
//!
//! Unlike polling, a trigger records every transition: a run makes only legal ones, an ended run
//! makes none, and each claim increments the lease by one.

use crate::support::database_facts::{DatabaseFacts, word};

const SQLITE: &str = "
CREATE TABLE run_moves (n INTEGER PRIMARY KEY, run_id BLOB NOT NULL, was TEXT, became TEXT NOT NULL, lease_was INTEGER, lease INTEGER NOT NULL);
CREATE TRIGGER run_is_made AFTER INSERT ON conversation_runs BEGIN
  INSERT INTO run_moves (run_id, became, lease) VALUES (NEW.id, NEW.status, NEW.lease);
END;
CREATE TRIGGER run_moves AFTER UPDATE ON conversation_runs WHEN OLD.status <> NEW.status OR OLD.lease <> NEW.lease BEGIN
  INSERT INTO run_moves (run_id, was, became, lease_was, lease) VALUES (NEW.id, OLD.status, NEW.status, OLD.lease, NEW.lease);
END;";

const POSTGRES: &str = "
CREATE TABLE run_moves (n bigserial PRIMARY KEY, run_id uuid NOT NULL, was text, became text NOT NULL, lease_was bigint, lease bigint NOT NULL);
CREATE FUNCTION note_run_move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO run_moves (run_id, became, lease) VALUES (NEW.id, NEW.status, NEW.lease);
  ELSIF OLD.status <> NEW.status OR OLD.lease <> NEW.lease THEN
    INSERT INTO run_moves (run_id, was, became, lease_was, lease) VALUES (NEW.id, OLD.status, NEW.status, OLD.lease, NEW.lease);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER run_moves AFTER INSERT OR UPDATE ON conversation_runs FOR EACH ROW EXECUTE FUNCTION note_run_move();
ALTER TABLE conversation_runs ENABLE ALWAYS TRIGGER run_moves;";

/// Installs the trigger, which records every later transition.
pub async fn record(facts: &mut DatabaseFacts) {
    let triggers = match facts {
        DatabaseFacts::Sqlite(_) => SQLITE,
        DatabaseFacts::Postgres(_) => POSTGRES,
    };
    facts.execute(triggers).await;
}

/// Returns the illegal transitions.
pub async fn illegal(facts: &mut DatabaseFacts) -> Vec<String> {
    let lease = |column: &str| format!("coalesce(CAST({column} AS TEXT), '-')");
    let sql = format!(
        "SELECT {run} || ': ' || coalesce(was, 'nothing') || ' -> ' || became || ', lease ' || {lease_was} || ' -> ' || {lease} FROM run_moves WHERE NOT coalesce({legal}, FALSE) ORDER BY n",
        run = facts.hex("run_id"),
        lease_was = lease("lease_was"),
        lease = lease("lease"),
        legal = LEGAL,
    );
    let rows = facts.rows(&sql).await;
    rows.iter()
        .map(|row| format!("S3, S5: an illegal transition of run {}", word(&row[0])))
        .collect()
}

/// A claim increments the lease by one; no other transition changes it, and an end is final.
const LEGAL: &str = "(was IS NULL AND became = 'queued' AND lease = 0) \
    OR (was = 'queued' AND became = 'running' AND lease = lease_was + 1) \
    OR (was = 'queued' AND became IN ('canceled', 'skipped', 'failed') AND lease = lease_was) \
    OR (was = 'running' AND became IN ('succeeded', 'failed', 'canceled', 'queued') AND lease = lease_was)";
