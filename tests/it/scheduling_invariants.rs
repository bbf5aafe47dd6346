//! Tests that each scheduling invariant detects the row that violates it, and nothing else.

use migration::{Migrator, MigratorTrait};
use sea_orm::Database;
use serde_json::json;

use crate::support::backends::{TestDatabase, fresh_database, on_both};
use crate::support::database_facts::DatabaseFacts;
use crate::support::{invariants, transitions};

on_both! {
    async fn a_valid_conversation_violates_no_invariant(backend) {
        let database = fresh_database(&backend).await;
        let mut facts = empty_tables(&database).await;

        insert(&mut facts, &[conversation(), round("active", "generating", 1, &["spoken", "pending"]), run(1, "succeeded"), message(1, 1, Some(1)), run(2, "queued")]).await;
        store_newest(&mut facts).await;

        assert_eq!(invariants::at_any_instant(&mut facts).await, Vec::<String>::new());
        assert_eq!(invariants::at_rest(&mut facts).await.len(), 1, "a queued run at rest is a violation");
    }

    async fn each_violation_is_detected(backend) {
        let database = fresh_database(&backend).await;
        let mut facts = empty_tables(&database).await;
        drop_constraint_indexes(&mut facts).await;

        for (invariant, rows) in violations() {
            for table in ["messages", "conversation_runs", "conversation_rounds", "conversations"] {
                facts.execute(&format!("DELETE FROM {table}")).await;
            }
            insert(&mut facts, &[vec![conversation()], rows].concat()).await;
            if invariant != NEWEST {
                store_newest(&mut facts).await;
            }

            let found = invariants::at_any_instant(&mut facts).await;

            assert_eq!(found.len(), 1, "{invariant}: {found:?}");
            assert!(found[0].starts_with(invariant), "{invariant}: {found:?}");
        }
    }
}

on_both! {
    async fn each_illegal_transition_is_detected(backend) {
        let database = fresh_database(&backend).await;
        let mut facts = empty_tables(&database).await;
        transitions::record(&mut facts).await;
        let transitions_to_try = [
            ("status = 'running', lease = lease + 1, worker_id = 'node', started_at = 1, heartbeat_at = 1", 0),
            ("status = 'queued'", 0),
            ("status = 'running', lease = lease + 2", 1),
            ("status = 'succeeded'", 1),
            ("status = 'running', lease = lease + 1", 2),
        ];

        insert(&mut facts, &[conversation(), queued_run_without_a_claim()]).await;
        insert(&mut facts, &[run(2, "running")]).await;
        assert_eq!(
            transitions::illegal(&mut facts).await.len(),
            1,
            "a run was inserted as running"
        );
        facts.execute("DELETE FROM conversation_runs WHERE status = 'running'").await;
        facts.execute("DELETE FROM run_moves WHERE became = 'running'").await;
        for (change, n_illegal) in transitions_to_try {
            facts.execute(&format!("UPDATE conversation_runs SET {change}")).await;

            assert_eq!(transitions::illegal(&mut facts).await.len(), n_illegal, "{change}");
        }
    }
}

fn queued_run_without_a_claim() -> Row {
    Row {
        table: "conversation_runs",
        columns: "id, conversation_id, status, reason, speaker_space_membership_id, created_at, lease",
        values: vec![
            Uuid(1),
            Number(1),
            Text("queued"),
            Text("user_message"),
            Number(1),
            Number(1),
            Number(0),
        ],
    }
}

/// The invariant of the newest messages that a conversation stores.
const NEWEST: &str = "L22";

/// Stores the newest messages, as the scheduler does with each message.
async fn store_newest(facts: &mut DatabaseFacts) {
    let of_role = |role| {
        format!(
            "(SELECT max(m.seq) FROM messages m WHERE m.conversation_id = conversations.id \
             AND m.visibility <> 'hidden' AND m.role = '{role}')"
        )
    };
    let (assistant, user) = (of_role("assistant"), of_role("user"));
    facts
        .execute(&format!(
            "UPDATE conversations SET last_assistant_seq = {assistant}, last_user_seq = {user}"
        ))
        .await;
    facts
        .execute(
            "UPDATE conversations SET last_speaker_membership_id = (SELECT max(m.space_membership_id) \
             FROM messages m WHERE m.conversation_id = conversations.id \
             AND m.visibility <> 'hidden' AND m.seq = conversations.last_assistant_seq)",
        )
        .await;
}

/// Returns invariants, each with rows that violate it.
fn violations() -> Vec<(&'static str, Vec<Row>)> {
    vec![
        (
            "I1: a conversation has at most one queued run",
            vec![run(1, "queued"), run(2, "queued")],
        ),
        (
            "I1: a conversation has at most one running run",
            vec![run(1, "running"), run(2, "running")],
        ),
        ("I2", vec![round("active", "generating", 0, &["pending"])]),
        (
            "I3",
            vec![round("active", "failed", 0, &["pending"]), run(1, "queued")],
        ),
        ("S16", vec![round("active", "waiting", 0, &["pending"])]),
        ("I4", vec![round("finished", "generating", 1, &["pending"])]),
        (
            "I4",
            vec![round("finished", "generating", 0, &["spoken", "spoken"])],
        ),
        (
            "C1",
            vec![
                run(1, "succeeded"),
                message(1, 1, Some(1)),
                message(2, 2, Some(1)),
            ],
        ),
        ("C2: a run that succeeded", vec![run(1, "succeeded")]),
        (
            "C2: a run that did not",
            vec![run(1, "failed"), message(1, 1, Some(1))],
        ),
        ("I11", vec![run(1, "canceled"), message(1, 1, Some(1))]),
        ("T1", vec![message(1, 1, None), message(2, 3, None)]),
        (NEWEST, vec![message(1, 1, None)]),
        ("S3", vec![unfinished_failure()]),
        ("S14", vec![unexplained_cancel()]),
    ]
}

/// A row: its table, columns and values. Small numbers stand for the UUIDs of rounds and runs.
#[derive(Clone)]
struct Row {
    table: &'static str,
    columns: &'static str,
    values: Vec<Value>,
}

#[derive(Clone)]
enum Value {
    Number(i64),
    Text(&'static str),
    Uuid(i64),
    /// The slots of a round, by their status.
    Slots(&'static [&'static str]),
    Null,
}

use Value::{Null, Number, Slots, Text, Uuid};

fn conversation() -> Row {
    Row {
        table: "conversations",
        columns: "id, space_id, kind, rev, created_at",
        values: vec![Number(1), Number(1), Text("root"), Number(9), Number(1)],
    }
}

fn round(
    status: &'static str,
    state: &'static str,
    cursor: i64,
    slots: &'static [&'static str],
) -> Row {
    let columns = "id, conversation_id, status, state, cursor, seed, created_at, slots";
    Row {
        table: "conversation_rounds",
        columns,
        values: vec![
            Uuid(1),
            Number(1),
            Text(status),
            Text(state),
            Number(cursor),
            Number(1),
            Number(1),
            Slots(slots),
        ],
    }
}

/// Returns a run of round 1 as the queue would store it in this status.
fn run(id: i64, status: &'static str) -> Row {
    let columns = "id, conversation_id, round_id, status, reason, speaker_space_membership_id, created_at, lease, worker_id, started_at, heartbeat_at, cutoff_seq, run_seq, finished_at, error, canceled_because";
    let is_over = !["queued", "running"].contains(&status);
    let ended = if is_over { Number(3) } else { Null };
    let error = if status == "failed" { Text("{}") } else { Null };
    let reason = if status == "canceled" {
        Text("stopped")
    } else {
        Null
    };
    let owner = [Number(1), Text("node"), Number(2), Number(2), Number(1)];
    let values = [
        vec![
            Uuid(id),
            Number(1),
            Uuid(1),
            Text(status),
            Text("user_message"),
            Number(1),
            Number(1),
        ],
        owner.to_vec(),
        vec![Number(id)],
        vec![ended, error, reason],
    ]
    .concat();
    Row {
        table: "conversation_runs",
        columns,
        values,
    }
}

/// Returns a failed run without an end time and an error.
fn unfinished_failure() -> Row {
    let mut row = run(1, "failed");
    row.values.truncate(row.values.len() - 3);
    row.values.extend([Null, Null, Null]);
    row
}

/// Returns a canceled run without a reason.
fn unexplained_cancel() -> Row {
    let mut row = run(1, "canceled");
    row.values.pop();
    row.values.push(Null);
    row
}

fn message(id: i64, seq: i64, run: Option<i64>) -> Row {
    let columns = "id, conversation_id, seq, space_membership_id, content, conversation_run_id, created_at, rev";
    Row {
        table: "messages",
        columns,
        values: vec![
            Number(id),
            Number(1),
            Number(seq),
            Number(1),
            Text("text"),
            run.map_or(Null, Uuid),
            Number(1),
            Number(1),
        ],
    }
}

async fn insert(facts: &mut DatabaseFacts, rows: &[Row]) {
    for row in rows {
        let values: Vec<String> = row.values.iter().map(|value| sql(facts, value)).collect();
        facts
            .execute(&format!(
                "INSERT INTO {} ({}) VALUES ({})",
                row.table,
                row.columns,
                values.join(", ")
            ))
            .await;
    }
}

fn sql(facts: &DatabaseFacts, value: &Value) -> String {
    match value {
        Number(number) => number.to_string(),
        Text(text) => format!("'{text}'"),
        Slots(all) => {
            let slot = |(position, status)| {
                json!({"position": position, "space_membership_id": 1, "status": status,
                    "chosen_because": "", "forced": false})
            };
            format!(
                "'{}'",
                serde_json::Value::from_iter(all.iter().enumerate().map(slot))
            )
        }
        Null => "NULL".to_owned(),
        Uuid(n) => match facts {
            DatabaseFacts::Sqlite(_) => format!("X'{n:032x}'"),
            DatabaseFacts::Postgres(_) => format!("'{n:032x}'"),
        },
    }
}

/// Opens an empty database with all tables and without checks of foreign keys.
async fn empty_tables(database: &TestDatabase) -> DatabaseFacts {
    let connection = Database::connect(database.url())
        .await
        .expect("the test database is reachable");
    Migrator::up(&connection, None)
        .await
        .expect("all migrations are applied");
    connection.close().await.expect("the connection is closed");
    let mut facts = DatabaseFacts::open(database).await;
    facts.ignore_parents().await;
    facts
}

/// Drops unique indexes that would prevent the violations.
async fn drop_constraint_indexes(facts: &mut DatabaseFacts) {
    for index in [
        "one_running_run_per_conversation",
        "one_queued_run_per_conversation",
        "one_message_per_run",
    ] {
        facts.execute(&format!("DROP INDEX {index}")).await;
    }
}
