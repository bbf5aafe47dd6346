//! Creates the tables of Assistants and Threads under `/v1`: `assistants`, `threads`, `thread_runs`
//! with `thread_run_steps`, and `thread_messages`. A thread has at most one run that has not ended.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const ASSISTANTS: &str = "assistants";
const THREADS: &str = "threads";
const RUNS: &str = "thread_runs";
const STEPS: &str = "thread_run_steps";
const MESSAGES: &str = "thread_messages";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [assistants(), threads(), runs(), steps(), messages()] {
            manager.create_table(table).await?;
        }
        for index in indexes() {
            manager.create_index(index).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[MESSAGES, STEPS, RUNS, THREADS, ASSISTANTS]).await
    }
}

/// An id of an object of these tables: a prefix, `_`, 32 hexadecimal digits.
fn own_id(name: &'static str) -> ColumnDef {
    string_len(name, 64)
}

fn own_id_null(name: &'static str) -> ColumnDef {
    string_len_null(name, 64)
}

/// The owner, with whom the rows of `table` are deleted.
fn refers_to_user(table: &'static str) -> ForeignKeyCreateStatement {
    refers(table, "user_id", "users", ForeignKeyAction::Cascade)
}

fn assistants() -> TableCreateStatement {
    Table::create()
        .table(ASSISTANTS)
        .col(own_id("id").primary_key())
        .col(big_integer("user_id"))
        .col(text_null("name"))
        .col(text_null("description"))
        .col(text_null("instructions"))
        .col(text("model"))
        .col(json_binary("tools"))
        .col(document("metadata"))
        .col(double_null("temperature"))
        .col(double_null("top_p"))
        .col(json_binary_null("response_format"))
        .col(instant("created_at"))
        .col(instant_null("deleted_at"))
        .foreign_key(&mut refers_to_user(ASSISTANTS))
        .take()
}

fn threads() -> TableCreateStatement {
    Table::create()
        .table(THREADS)
        .col(own_id("id").primary_key())
        .col(big_integer("user_id"))
        .col(document("metadata"))
        .col(big_integer("next_seq").default(0))
        .col(instant("created_at"))
        // The last change, from which the retention time counts.
        .col(instant("updated_at"))
        .col(instant_null("deleted_at"))
        .foreign_key(&mut refers_to_user(THREADS))
        .take()
}

fn runs() -> TableCreateStatement {
    let statuses = [
        "queued",
        "in_progress",
        "requires_action",
        "cancelling",
        "cancelled",
        "failed",
        "completed",
        "incomplete",
        "expired",
    ];
    Table::create()
        .table(RUNS)
        .col(own_id("id").primary_key())
        .col(own_id("thread_id"))
        // Without a foreign key: a run outlives its assistant.
        .col(own_id("assistant_id"))
        .col(big_integer("user_id"))
        .col(word("status", "queued", &statuses))
        .col(json_binary("spec"))
        .col(document("metadata"))
        .col(json_binary_null("required_action"))
        .col(json_binary_null("last_error"))
        .col(string_len_null("incomplete_reason", 64))
        .col(json_binary_null("usage"))
        // Over all resumptions, for the limits of a run.
        .col(big_integer("n_model_calls").default(0))
        .col(big_integer("n_server_calls").default(0))
        .col(instant("expires_at"))
        .col(string_len_null("worker_id", 64))
        .col(big_integer("lease").default(0))
        .col(big_integer("attempt").default(0))
        .col(instant_null("heartbeat_at"))
        .col(instant_null("cancel_requested_at"))
        .col(instant("created_at"))
        .col(instant_null("started_at"))
        .col(instant_null("completed_at"))
        .col(instant_null("cancelled_at"))
        .col(instant_null("failed_at"))
        .check((
            "a_thread_run_in_progress_has_an_owner",
            Expr::col("status")
                .ne("in_progress")
                .or(Expr::col("worker_id")
                    .is_not_null()
                    .and(Expr::col("heartbeat_at").is_not_null())
                    .and(Expr::col("started_at").is_not_null())
                    .and(Expr::col("lease").gte(1))),
        ))
        .foreign_key(&mut refers(
            RUNS,
            "thread_id",
            THREADS,
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refers_to_user(RUNS))
        .take()
}

fn steps() -> TableCreateStatement {
    let kinds = ["message_creation", "tool_calls"];
    let statuses = ["in_progress", "cancelled", "failed", "completed", "expired"];
    Table::create()
        .table(STEPS)
        .col(own_id("id").primary_key())
        .col(own_id("run_id"))
        .col(big_integer("position"))
        .col(word("type", "message_creation", &kinds))
        .col(word("status", "in_progress", &statuses))
        .col(json_binary("step_details"))
        .col(json_binary_null("usage"))
        .col(json_binary_null("last_error"))
        .col(instant("created_at"))
        .col(instant_null("completed_at"))
        .col(instant_null("cancelled_at"))
        .col(instant_null("failed_at"))
        .col(instant_null("expired_at"))
        .foreign_key(&mut refers(
            STEPS,
            "run_id",
            RUNS,
            ForeignKeyAction::Cascade,
        ))
        .take()
}

fn messages() -> TableCreateStatement {
    let statuses = ["in_progress", "incomplete", "completed"];
    Table::create()
        .table(MESSAGES)
        .col(own_id("id").primary_key())
        .col(own_id("thread_id"))
        .col(big_integer("seq"))
        .col(word("role", "user", &["user", "assistant"]))
        .col(json_binary("content"))
        .col(word("status", "completed", &statuses))
        // Without a foreign key: a message outlives the assistant that wrote it.
        .col(own_id_null("assistant_id"))
        .col(own_id_null("run_id"))
        // The only run whose context contains it; it is in no list.
        .col(own_id_null("hidden_for_run_id"))
        .col(document("metadata"))
        .col(json_binary_null("incomplete_details"))
        .col(instant("created_at"))
        // When it ended, completed or not.
        .col(instant_null("completed_at"))
        .col(instant_null("deleted_at"))
        .foreign_key(&mut refers(
            MESSAGES,
            "thread_id",
            THREADS,
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refers(
            MESSAGES,
            "run_id",
            RUNS,
            ForeignKeyAction::SetNull,
        ))
        .foreign_key(&mut refers(
            MESSAGES,
            "hidden_for_run_id",
            RUNS,
            ForeignKeyAction::Cascade,
        ))
        .take()
}

fn indexes() -> Vec<IndexCreateStatement> {
    let status = |word: &'static str| Expr::col("status").eq(word);
    let active = || {
        status("queued")
            .or(status("in_progress"))
            .or(status("requires_action"))
            .or(status("cancelling"))
    };
    let given = |name: &'static str, table: &'static str, columns: &[&'static str]| {
        let first = Expr::col(columns[0]);
        index(name, table, columns)
            .and_where(first.is_not_null())
            .take()
    };
    vec![
        index("assistants_of_a_user", ASSISTANTS, &["user_id", "id"]),
        given("deleted_assistants", ASSISTANTS, &["deleted_at"]),
        index("threads_of_a_user", THREADS, &["user_id"]),
        index("threads_by_last_change", THREADS, &["updated_at"]),
        given("deleted_threads", THREADS, &["deleted_at"]),
        unique("one_active_run_per_thread", RUNS, &["thread_id"])
            .and_where(active())
            .take(),
        index("runs_of_a_thread", RUNS, &["thread_id", "id"]),
        index("thread_runs_of_a_user", RUNS, &["user_id"]),
        index("queued_thread_runs_by_age", RUNS, &["created_at"])
            .and_where(status("queued"))
            .take(),
        index("open_thread_runs_by_heartbeat", RUNS, &["heartbeat_at"])
            .and_where(status("in_progress").or(status("cancelling")))
            .take(),
        index("active_thread_runs_by_expiry", RUNS, &["expires_at"])
            .and_where(active())
            .take(),
        unique(
            "one_thread_run_step_per_position",
            STEPS,
            &["run_id", "position"],
        ),
        unique(
            "one_thread_message_per_seq",
            MESSAGES,
            &["thread_id", "seq"],
        ),
        given("messages_of_a_thread_run", MESSAGES, &["run_id", "seq"]),
        given(
            "messages_hidden_for_a_thread_run",
            MESSAGES,
            &["hidden_for_run_id", "seq"],
        ),
        given("deleted_thread_messages", MESSAGES, &["deleted_at"]),
    ]
}
