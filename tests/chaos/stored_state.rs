//! Reads from either database what is stored of messages, runs and rounds, and creates the trigger that
//! records the changes of rounds.

use crate::stored_record::{
    Audience, PersonTurn, RoundChange, StoredLine, StoredRun, StoredState, StoredText,
};
use crate::support::database_facts::{DatabaseFacts, TextRow};

/// After `triggers.rs`, whose sequence orders the changes of all tables.
const POSTGRES: &str = "
CREATE TABLE chk_rounds (n bigint, at bigint, tx bigint, conversation bigint, round uuid, status text, state text,
  cursor_at bigint, deadline bigint);
CREATE FUNCTION chk_round() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO chk_rounds VALUES (nextval('chk_n'), chk_us(), txid_current(), NEW.conversation_id, NEW.id, NEW.status,
    NEW.state, NEW.cursor, coalesce(NEW.deadline_at, 0));
  RETURN NEW;
END $$;
CREATE TRIGGER chk_round AFTER INSERT OR UPDATE ON conversation_rounds FOR EACH ROW EXECUTE FUNCTION chk_round();";

const SQLITE: &str = "
CREATE TABLE chk_rounds (n INTEGER PRIMARY KEY, at INTEGER, tx INTEGER, conversation INTEGER, round BLOB, status TEXT,
  state TEXT, cursor_at INTEGER, deadline INTEGER);
CREATE TRIGGER chk_round_is_made AFTER INSERT ON conversation_rounds BEGIN
  INSERT INTO chk_rounds (at, tx, conversation, round, status, state, cursor_at, deadline)
  VALUES (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000, 0, NEW.conversation_id, NEW.id, NEW.status,
    NEW.state, NEW.cursor, coalesce(NEW.deadline_at, 0));
END;
CREATE TRIGGER chk_round_changes AFTER UPDATE ON conversation_rounds BEGIN
  INSERT INTO chk_rounds (at, tx, conversation, round, status, state, cursor_at, deadline)
  VALUES (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000, 0, NEW.conversation_id, NEW.id, NEW.status,
    NEW.state, NEW.cursor, coalesce(NEW.deadline_at, 0));
END;";

const LINES: &str = "SELECT CAST(conversation_id AS TEXT), CAST(seq AS TEXT), role, content, audience \
    FROM messages WHERE visibility <> 'hidden' ORDER BY conversation_id, messages.seq";

/// Creates the trigger.
pub async fn record(facts: &mut DatabaseFacts) {
    let triggers = match facts {
        DatabaseFacts::Sqlite(_) => SQLITE,
        DatabaseFacts::Postgres(_) => POSTGRES,
    };
    facts.execute(triggers).await;
}

/// Reads everything.
pub async fn read(facts: &mut DatabaseFacts) -> StoredState {
    let mut state = StoredState::default();
    for row in facts.rows(LINES).await {
        let line = StoredLine {
            line: (number(&row, 1), text(&row, 2), text(&row, 3)),
            audience: audience(&text(&row, 4)),
        };
        let timeline = state.timelines.entry(number(&row, 0));
        timeline.or_default().push(line);
    }
    let sql = texts(facts);
    state.texts = facts.rows(&sql).await.iter().map(stored_text).collect();
    let sql = runs(facts);
    state.runs = facts.rows(&sql).await.iter().map(stored_run).collect();
    let sql = turns(facts);
    state.turns = facts.rows(&sql).await.iter().map(person_turn).collect();
    let sql = round_changes(facts);
    let changes = facts.rows(&sql).await;
    state.round_changes = changes.iter().map(round_change).collect();
    state
}

/// Parses the column of an audience: `,3,7,`, or nothing for everyone.
pub fn audience(column: &str) -> Audience {
    let members = column.split(',').filter(|it| !it.is_empty());
    members
        .map(|it| it.parse().expect("a membership is a number"))
        .collect()
}

fn texts(facts: &DatabaseFacts) -> String {
    let run =
        "CASE WHEN w.message_id IS NULL THEN m.conversation_run_id ELSE w.conversation_run_id END";
    format!(
        "SELECT CAST(m.conversation_id AS TEXT), CAST(m.id AS TEXT), CAST(coalesce(w.position, 0) AS TEXT), \
         coalesce(w.content, m.content), m.audience, CAST(m.space_membership_id AS TEXT), \
         CAST(m.origin_message_id AS TEXT), {}, r.kind, r.status FROM messages m \
         LEFT JOIN message_swipes w ON w.message_id = m.id LEFT JOIN conversation_runs r ON r.id = {run} \
         ORDER BY m.id, coalesce(w.position, 0)",
        facts.hex(&format!("({run})"))
    )
}

fn runs(facts: &DatabaseFacts) -> String {
    format!(
        "SELECT {}, CAST(r.conversation_id AS TEXT), r.kind, r.status, r.audience, r.debug ->> 'chosen_because', \
         s.reply_order, p.kind FROM conversation_runs r JOIN conversations c ON c.id = r.conversation_id \
         JOIN spaces s ON s.id = c.space_id \
         LEFT JOIN space_memberships p ON p.id = r.speaker_space_membership_id",
        facts.hex("r.id")
    )
}

/// A forced slot of a person is one of the copilot.
fn turns(facts: &DatabaseFacts) -> String {
    let field = |name: &str| format!("CAST(s.value ->> '{name}' AS TEXT)");
    format!(
        "SELECT {}, CAST(r.conversation_id AS TEXT), {}, {}, {}, {} FROM conversation_rounds r, {} \
         WHERE coalesce({}, '') NOT IN ('true', '1') AND EXISTS (SELECT 1 FROM space_memberships p \
         WHERE p.kind = 'human' AND p.id = CAST(s.value ->> 'space_membership_id' AS BIGINT))",
        facts.hex("r.id"),
        field("space_membership_id"),
        field("status"),
        field("skip_reason"),
        field("message_id"),
        facts.slots(),
        field("forced"),
    )
}

fn round_changes(facts: &DatabaseFacts) -> String {
    let columns = ["n", "at", "tx", "conversation", "cursor_at", "deadline"];
    let columns = columns.map(|it| facts.text(it)).join(", ");
    format!(
        "SELECT {}, status, state, {columns} FROM chk_rounds ORDER BY chk_rounds.n",
        facts.hex("round")
    )
}

fn stored_text(row: &TextRow) -> StoredText {
    StoredText {
        conversation: number(row, 0),
        message: number(row, 1),
        position: number(row, 2),
        content: text(row, 3),
        audience: audience(&text(row, 4)),
        author: number(row, 5),
        is_clone: row[6].is_some(),
        run: uuid(row, 7),
        kind: text(row, 8),
        end: text(row, 9),
    }
}

fn stored_run(row: &TextRow) -> StoredRun {
    StoredRun {
        run: uuid(row, 0),
        conversation: number(row, 1),
        kind: text(row, 2),
        status: text(row, 3),
        audience: audience(&text(row, 4)),
        chosen_because: text(row, 5),
        is_directed: text(row, 6) == "director",
        by_copilot: text(row, 7) == "human",
    }
}

fn person_turn(row: &TextRow) -> PersonTurn {
    PersonTurn {
        round: uuid(row, 0),
        conversation: number(row, 1),
        membership: number(row, 2),
        status: text(row, 3),
        skip_reason: text(row, 4),
        message: number(row, 5),
    }
}

fn round_change(row: &TextRow) -> RoundChange {
    RoundChange {
        round: uuid(row, 0),
        status: text(row, 1),
        state: text(row, 2),
        n: number(row, 3),
        at: number(row, 4),
        tx: number(row, 5),
        conversation: number(row, 6),
        cursor: number(row, 7),
        deadline: number(row, 8),
    }
}

/// Returns a column, empty for NULL.
fn text(row: &TextRow, at: usize) -> String {
    row[at].clone().unwrap_or_default()
}

/// Returns 32 hexadecimal digits as the API writes an id, empty for NULL.
fn uuid(row: &TextRow, at: usize) -> String {
    let digits = text(row, at);
    match digits.len() {
        32 => [0..8, 8..12, 12..16, 16..20, 20..32]
            .map(|it| &digits[it])
            .join("-"),
        _ => digits,
    }
}

/// Returns a number, 0 for NULL.
fn number(row: &TextRow, at: usize) -> i64 {
    let column = row[at].as_deref();
    column.map_or(0, |it| it.parse().expect("the column is a number"))
}
