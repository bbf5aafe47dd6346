//! Database triggers that log every transition; the log is read when no run is unfinished.

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection, Row};

use crate::record::{CopilotChange, DatabaseSample, Evidence, Move, Rules, Version, Writing};
use crate::stored_state::audience;

const TRIGGERS: &str = "
CREATE SEQUENCE chk_n;
CREATE TABLE chk_moves (n bigint, at bigint, tx bigint, conversation bigint, run text, was text, became text,
  lease_was bigint, lease bigint, node text, kind text, reason text, round text, slot bigint, cutoff bigint,
  run_after bigint, burst bigint, silence bigint, error text, kept boolean, seat bigint, by_copilot boolean,
  audience text);
CREATE TABLE chk_writings (n bigint, at bigint, tx bigint, conversation bigint, message bigint, seq bigint, rev bigint,
  is_new boolean, role text, hidden boolean, run text, key text, content text, created bigint, origin bigint, seat bigint,
  audience text, for_people boolean);
CREATE TABLE chk_versions (n bigint, tx bigint, conversation bigint, message bigint, position bigint, run text, content text);
CREATE TABLE chk_seats (n bigint, tx bigint, seat bigint, steps bigint);
CREATE FUNCTION chk_us() RETURNS bigint LANGUAGE sql AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;
CREATE FUNCTION chk_move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP = 'UPDATE' AND (OLD.status, OLD.lease, OLD.round_id, OLD.slot_position, OLD.run_after, OLD.kind, OLD.cutoff_seq, OLD.reason)
    IS NOT DISTINCT FROM (NEW.status, NEW.lease, NEW.round_id, NEW.slot_position, NEW.run_after, NEW.kind, NEW.cutoff_seq, NEW.reason) THEN
    RETURN NEW;
  END IF;
  INSERT INTO chk_moves VALUES (nextval('chk_n'), chk_us(), txid_current(), NEW.conversation_id, NEW.id::text,
    CASE WHEN TG_OP = 'INSERT' THEN '' ELSE OLD.status END, NEW.status,
    CASE WHEN TG_OP = 'INSERT' THEN 0 ELSE OLD.lease END, NEW.lease, coalesce(NEW.worker_id, ''), NEW.kind, NEW.reason,
    coalesce(NEW.round_id::text, ''), coalesce(NEW.slot_position, -1), coalesce(NEW.cutoff_seq, -1),
    coalesce(NEW.run_after, 0), coalesce(NEW.burst_started_at, 0),
    CASE WHEN TG_OP = 'INSERT' THEN 0 ELSE coalesce(chk_us() / 1000 - OLD.heartbeat_at, 0) END, coalesce(NEW.error->>'code', ''),
    NEW.keep_partial, coalesce(NEW.speaker_space_membership_id, 0),
    coalesce((SELECT kind = 'human' FROM space_memberships WHERE id = NEW.speaker_space_membership_id), FALSE),
    coalesce(NEW.audience, ''));
  RETURN NEW;
END $$;
CREATE TRIGGER chk_move AFTER INSERT OR UPDATE ON conversation_runs FOR EACH ROW EXECUTE FUNCTION chk_move();
CREATE FUNCTION chk_writing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO chk_writings VALUES (nextval('chk_n'), chk_us(), txid_current(), NEW.conversation_id, NEW.id, NEW.seq, NEW.rev,
    TG_OP = 'INSERT', NEW.role, NEW.visibility = 'hidden', coalesce(NEW.conversation_run_id::text, ''),
    coalesce(NEW.client_id, ''), NEW.content, NEW.created_at, coalesce(NEW.origin_message_id, 0), NEW.space_membership_id,
    coalesce(NEW.audience, ''), NEW.is_for_people);
  RETURN NEW;
END $$;
CREATE TRIGGER chk_writing AFTER INSERT OR UPDATE ON messages FOR EACH ROW EXECUTE FUNCTION chk_writing();
CREATE FUNCTION chk_version() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO chk_versions VALUES (nextval('chk_n'), txid_current(),
    (SELECT conversation_id FROM messages WHERE id = NEW.message_id), NEW.message_id, NEW.position,
    coalesce(NEW.conversation_run_id::text, ''), NEW.content);
  RETURN NEW;
END $$;
CREATE TRIGGER chk_version AFTER INSERT ON message_swipes FOR EACH ROW EXECUTE FUNCTION chk_version();
CREATE FUNCTION chk_seat() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO chk_seats VALUES (nextval('chk_n'), txid_current(), NEW.id,
    CASE WHEN NEW.copilot_mode = 'full' THEN NEW.copilot_remaining_steps ELSE 0 END);
  RETURN NEW;
END $$;
CREATE TRIGGER chk_seat AFTER UPDATE ON space_memberships FOR EACH ROW
  WHEN ((OLD.copilot_mode, OLD.copilot_remaining_steps) IS DISTINCT FROM (NEW.copilot_mode, NEW.copilot_remaining_steps))
  EXECUTE FUNCTION chk_seat();";

/// Messages with swipes whose text equals none of them.
const STRANGERS: &str = "SELECT m.id FROM messages m \
    WHERE EXISTS (SELECT 1 FROM message_swipes s WHERE s.message_id = m.id) \
    AND NOT EXISTS (SELECT 1 FROM message_swipes s WHERE s.message_id = m.id AND s.position = m.active_swipe AND s.content = m.content)";

/// Creates the triggers; from then on the database records every change.
pub async fn record(url: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    let triggers = AssertSqlSafe(TRIGGERS.to_owned());
    sqlx::raw_sql(triggers).execute(&mut connection).await?;
    connection.close().await
}

/// Reads the records, and the final content of the tables.
pub async fn read(url: &str, evidence: &mut Evidence) -> Result<(), sqlx::Error> {
    let mut db = PgConnection::connect(url).await?;
    let moves = sqlx::query("SELECT * FROM chk_moves ORDER BY n");
    evidence.moves = moves
        .fetch_all(&mut db)
        .await?
        .iter()
        .map(move_from_row)
        .collect();
    let writings = sqlx::query("SELECT * FROM chk_writings ORDER BY n");
    let writings = writings.fetch_all(&mut db).await?;
    evidence.writings = writings.iter().map(writing).collect();
    let versions = sqlx::query("SELECT * FROM chk_versions ORDER BY n");
    let versions = versions.fetch_all(&mut db).await?;
    evidence.versions = versions.iter().map(version).collect();
    let copilot_changes = sqlx::query("SELECT * FROM chk_seats ORDER BY n");
    evidence.copilot_changes = copilot_changes
        .fetch_all(&mut db)
        .await?
        .iter()
        .map(copilot_change)
        .collect();
    evidence.wrong_texts = sqlx::query_scalar(STRANGERS).fetch_all(&mut db).await?;
    let heads = "SELECT c.id, c.rev, c.last_seq, c.space_id, s.user_turn_debounce_ms, s.auto_mode_max_turns, \
        s.humans_take_turns \
        FROM conversations c JOIN spaces s ON s.id = c.space_id";
    for row in sqlx::query(heads).fetch_all(&mut db).await? {
        let (id, head) = (row.get("id"), (row.get("rev"), row.get("last_seq")));
        evidence.heads.insert(id, head);
        let rules = Rules {
            space: row.get("space_id"),
            debounce_ms: row.get("user_turn_debounce_ms"),
            max_auto: row.get("auto_mode_max_turns"),
            humans_take_turns: row.get("humans_take_turns"),
        };
        evidence.rules.insert(id, rules);
    }
    db.close().await
}

/// Returns the number of unfinished runs plus that of active rounds that go on by themselves.
pub async fn unfinished(url: &str) -> Result<i64, sqlx::Error> {
    let mut db = PgConnection::connect(url).await?;
    let sql = "SELECT (SELECT count(*) FROM conversation_runs WHERE status IN ('queued', 'running')) \
        + (SELECT count(*) FROM conversation_rounds WHERE status = 'active' \
        AND (state = 'generating' OR (state = 'waiting' AND deadline_at IS NOT NULL)))";
    sqlx::query_scalar(sql).fetch_one(&mut db).await
}

/// Describes what is unfinished, for the report.
pub async fn stuck(url: &str) -> Result<Vec<String>, sqlx::Error> {
    let mut db = PgConnection::connect(url).await?;
    let sql = "SELECT concat('run ', id, ' of conversation ', conversation_id, ' is ', status, ', lease ', lease, ' of ', worker_id, \
        ', due at ', run_after, ', beat at ', heartbeat_at) FROM conversation_runs WHERE status IN ('queued', 'running') \
        UNION ALL SELECT concat('round ', id, ' of conversation ', conversation_id, ' is ', state, ' until ', deadline_at) FROM conversation_rounds \
        WHERE status = 'active' AND (state = 'generating' OR (state = 'waiting' AND deadline_at IS NOT NULL))";
    sqlx::query_scalar(sql).fetch_all(&mut db).await
}

/// Reads the sizes of all timelines at one instant.
pub async fn sample(db: &mut PgConnection) -> Result<DatabaseSample, sqlx::Error> {
    // A branch begins with clones of the visible messages.
    let sql = "SELECT conversation_id, count(*) FILTER (WHERE origin_message_id IS NULL), \
        max(seq) - coalesce(max(seq) FILTER (WHERE origin_message_id IS NOT NULL), 0) \
        FROM messages GROUP BY conversation_id";
    let rows = sqlx::query(sql).fetch_all(db).await?;
    let count = |row: &PgRow| (row.get(0), row.get(1), row.get(2));
    Ok(DatabaseSample {
        counts: rows.iter().map(count).collect(),
    })
}

fn move_from_row(row: &PgRow) -> Move {
    Move {
        n: row.get("n"),
        at: row.get("at"),
        tx: row.get("tx"),
        conversation: row.get("conversation"),
        run: row.get("run"),
        was: row.get("was"),
        became: row.get("became"),
        lease_was: row.get("lease_was"),
        lease: row.get("lease"),
        node: row.get("node"),
        kind: row.get("kind"),
        reason: row.get("reason"),
        round: row.get("round"),
        slot: row.get("slot"),
        cutoff: row.get("cutoff"),
        run_after: row.get("run_after"),
        burst: row.get("burst"),
        silence: row.get("silence"),
        error: row.get("error"),
        kept: row.get("kept"),
        membership: row.get("seat"),
        by_copilot: row.get("by_copilot"),
        audience: audience(row.get("audience")),
    }
}

fn version(row: &PgRow) -> Version {
    Version {
        n: row.get("n"),
        tx: row.get("tx"),
        conversation: row.get("conversation"),
        message: row.get("message"),
        position: row.get("position"),
        run: row.get("run"),
        content: row.get("content"),
    }
}

fn copilot_change(row: &PgRow) -> CopilotChange {
    CopilotChange {
        n: row.get("n"),
        tx: row.get("tx"),
        membership: row.get("seat"),
        steps: row.get("steps"),
    }
}

fn writing(row: &PgRow) -> Writing {
    Writing {
        n: row.get("n"),
        at: row.get("at"),
        tx: row.get("tx"),
        conversation: row.get("conversation"),
        message: row.get("message"),
        seq: row.get("seq"),
        rev: row.get("rev"),
        is_new: row.get("is_new"),
        role: row.get("role"),
        hidden: row.get("hidden"),
        run: row.get("run"),
        key: row.get("key"),
        content: row.get("content"),
        created: row.get("created"),
        origin: row.get("origin"),
        membership: row.get("seat"),
        audience: audience(row.get("audience")),
        is_for_people: row.get("for_people"),
    }
}
