//! The transition log: triggers of the harness write down every change while the server works, and
//! are read once everything rests.

use sqlx::AssertSqlSafe;
use sqlx::Connection;
use sqlx::Row;
use sqlx::postgres::PgConnection;
use sqlx::postgres::PgRow;

use crate::record::Evidence;
use crate::record::Look;
use crate::record::Move;
use crate::record::Writing;

const TRIGGERS: &str = "
CREATE SEQUENCE chk_n;
CREATE TABLE chk_moves (n bigint, at bigint, tx bigint, conversation bigint, run text, was text, became text,
  lease_was bigint, lease bigint, node text, kind text, reason text, round text, slot bigint, cutoff bigint,
  run_after bigint, burst bigint, silence bigint, error text);
CREATE TABLE chk_writings (n bigint, at bigint, tx bigint, conversation bigint, message bigint, seq bigint, rev bigint,
  is_new boolean, role text, hidden boolean, run text, key text, content text, created bigint);
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
    CASE WHEN TG_OP = 'INSERT' THEN 0 ELSE coalesce(chk_us() / 1000 - OLD.heartbeat_at, 0) END, coalesce(NEW.error->>'code', ''));
  RETURN NEW;
END $$;
CREATE TRIGGER chk_move AFTER INSERT OR UPDATE ON conversation_runs FOR EACH ROW EXECUTE FUNCTION chk_move();
CREATE FUNCTION chk_writing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO chk_writings VALUES (nextval('chk_n'), chk_us(), txid_current(), NEW.conversation_id, NEW.id, NEW.seq, NEW.rev,
    TG_OP = 'INSERT', NEW.role, NEW.visibility = 'hidden', coalesce(NEW.conversation_run_id::text, ''),
    coalesce(NEW.client_id, ''), NEW.content, NEW.created_at);
  RETURN NEW;
END $$;
CREATE TRIGGER chk_writing AFTER INSERT OR UPDATE ON messages FOR EACH ROW EXECUTE FUNCTION chk_writing();";

/// From now on the database writes every change down.
pub async fn record(url: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    let triggers = AssertSqlSafe(TRIGGERS.to_owned());
    sqlx::raw_sql(triggers).execute(&mut connection).await?;
    connection.close().await
}

/// Reads what was written down, and what the tables hold in the end.
pub async fn read(url: &str, evidence: &mut Evidence) -> Result<(), sqlx::Error> {
    let mut db = PgConnection::connect(url).await?;
    let moves = sqlx::query("SELECT * FROM chk_moves ORDER BY n");
    evidence.moves = moves.fetch_all(&mut db).await?.iter().map(a_move).collect();
    let writings = sqlx::query("SELECT * FROM chk_writings ORDER BY n");
    let writings = writings.fetch_all(&mut db).await?;
    evidence.writings = writings.iter().map(writing).collect();
    let heads = sqlx::query("SELECT id, rev, last_seq FROM conversations");
    for row in heads.fetch_all(&mut db).await? {
        let head = (row.get("rev"), row.get("last_seq"));
        evidence.heads.insert(row.get("id"), head);
    }
    let shown = "SELECT conversation_id, seq, role, content FROM messages WHERE visibility <> 'hidden' ORDER BY seq";
    for row in sqlx::query(shown).fetch_all(&mut db).await? {
        let timeline = evidence.timelines.entry(row.get("conversation_id"));
        let line = (row.get("seq"), row.get("role"), row.get("content"));
        timeline.or_default().push(line);
    }
    db.close().await
}

/// How many runs are not over, and how many rounds go on.
pub async fn unfinished(url: &str) -> Result<i64, sqlx::Error> {
    let mut db = PgConnection::connect(url).await?;
    let sql = "SELECT (SELECT count(*) FROM conversation_runs WHERE status IN ('queued', 'running')) \
        + (SELECT count(*) FROM conversation_rounds WHERE status = 'active' AND state = 'generating')";
    sqlx::query_scalar(sql).fetch_one(&mut db).await
}

/// Why they are not, for the report.
pub async fn stuck(url: &str) -> Result<Vec<String>, sqlx::Error> {
    let mut db = PgConnection::connect(url).await?;
    let sql = "SELECT concat('run ', id, ' of conversation ', conversation_id, ' is ', status, ', lease ', lease, ' of ', worker_id, \
        ', due at ', run_after, ', beat at ', heartbeat_at) FROM conversation_runs WHERE status IN ('queued', 'running') \
        UNION ALL SELECT concat('round ', id, ' of conversation ', conversation_id, ' goes on') FROM conversation_rounds WHERE status = 'active' AND state = 'generating'";
    sqlx::query_scalar(sql).fetch_all(&mut db).await
}

/// All timelines at this instant.
pub async fn look(db: &mut PgConnection) -> Result<Look, sqlx::Error> {
    let sql = "SELECT conversation_id, count(*), max(seq) FROM messages GROUP BY conversation_id";
    let rows = sqlx::query(sql).fetch_all(db).await?;
    let count = |row: &PgRow| (row.get(0), row.get(1), row.get(2));
    Ok(Look {
        counts: rows.iter().map(count).collect(),
    })
}

fn a_move(row: &PgRow) -> Move {
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
    }
}
