//! Creates the table `jobs`, adds `is_hidden` to conversations and spaces for the time in which a
//! job fills or deletes them, and adds `text_bytes` to conversations, computed from the stored
//! texts.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;
use sea_orm_migration::sea_orm::DbBackend;

const TABLE: &str = "jobs";
/// Table and column of what is added.
const COLUMNS: [(&str, &str); 3] = [
    ("conversations", "is_hidden"),
    ("conversations", "text_bytes"),
    ("spaces", "is_hidden"),
];
const HIDDEN: (&str, &str) = ("hidden_conversations", "conversations");
const COPILOTS: (&str, &str) = ("copilots_of_a_conversation", "space_memberships");
/// `GET /api/jobs/{id}` answers imports too, whose ids are below this one.
const FIRST_ID: i64 = 1_000_000_000;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let definitions = [
            boolean("is_hidden").default(false).take(),
            big_integer("text_bytes").default(0).take(),
            boolean("is_hidden").default(false).take(),
        ];
        for ((table, _), definition) in COLUMNS.into_iter().zip(definitions) {
            let add = Table::alter().table(table).add_column(definition).take();
            manager.alter_table(add).await?;
        }
        fill_text_bytes(manager).await?;
        let copilots = index(COPILOTS.0, COPILOTS.1, &["copilot_conversation_id"])
            .and_where(Expr::col("copilot_conversation_id").is_not_null())
            .take();
        manager.create_index(copilots).await?;
        let hidden = index(HIDDEN.0, HIDDEN.1, &["id"])
            .and_where(Expr::col("is_hidden"))
            .take();
        manager.create_index(hidden).await?;
        manager.create_table(jobs()).await?;
        for index in indexes() {
            manager.create_index(index).await?;
        }
        begin_ids(manager).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[TABLE]).await?;
        for (name, table) in [HIDDEN, COPILOTS] {
            let index = Index::drop().name(name).table(table).to_owned();
            manager.drop_index(index).await?;
        }
        for (table, column) in COLUMNS {
            let drop = Table::alter().table(table).drop_column(column).take();
            manager.alter_table(drop).await?;
        }
        Ok(())
    }
}

fn jobs() -> TableCreateStatement {
    let kinds = [
        "branch",
        "regenerate_branch",
        "delete_conversation",
        "delete_space",
    ];
    let statuses = ["running", "succeeded", "failed", "canceled"];
    Table::create()
        .table(TABLE)
        .col(id())
        .col(word("kind", "branch", &kinds))
        .col(big_integer_null("user_id"))
        // These two outlive what they name.
        .col(big_integer_null("space_id"))
        .col(big_integer_null("conversation_id"))
        .col(uuid_null("run_id"))
        .col(word("status", "running", &statuses))
        // A job that ended without its result still deletes what it had made.
        .col(boolean("needs_work").default(true))
        .col(big_integer("n_done").default(0))
        .col(big_integer("n_total").default(0))
        .col(document("cursor"))
        .col(instant("heartbeat_at"))
        .col(string_len_null("worker_id", 64))
        .col(document("report"))
        .col(json_binary_null("error"))
        .col(instant("created_at"))
        .col(instant_null("finished_at"))
        .foreign_key(&mut refers(
            TABLE,
            "user_id",
            "users",
            ForeignKeyAction::SetNull,
        ))
        .take()
}

fn indexes() -> [IndexCreateStatement; 4] {
    let makes_a_branch = Expr::col("status")
        .eq("running")
        .and(Expr::col("kind").is_in(["branch", "regenerate_branch"]));
    [
        index("jobs_of_a_user", TABLE, &["user_id", "id"]),
        index("jobs_with_work", TABLE, &["heartbeat_at"])
            .and_where(Expr::col("needs_work"))
            .take(),
        index("jobs_of_a_space", TABLE, &["space_id"]),
        unique("one_branch_job_per_user", TABLE, &["user_id"])
            .and_where(makes_a_branch)
            .take(),
    ]
}

/// From the texts that are there.
async fn fill_text_bytes(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let fill = "UPDATE conversations SET text_bytes = \
        COALESCE((SELECT SUM(octet_length(m.content)) FROM messages m \
            WHERE m.conversation_id = conversations.id), 0) \
        + COALESCE((SELECT SUM(octet_length(t.content)) FROM message_swipes t \
            JOIN messages m ON m.id = t.message_id \
            WHERE m.conversation_id = conversations.id), 0)";
    manager.get_connection().execute_unprepared(fill).await?;
    Ok(())
}

async fn begin_ids(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let begin = match manager.get_database_backend() {
        DbBackend::Postgres => {
            format!("SELECT setval(pg_get_serial_sequence('{TABLE}', 'id'), {FIRST_ID}, false)")
        }
        // The highest id that ever was is kept with the table.
        _ => format!(
            "INSERT INTO sqlite_sequence (name, seq) VALUES ('{TABLE}', {})",
            FIRST_ID - 1
        ),
    };
    manager.get_connection().execute_unprepared(&begin).await?;
    Ok(())
}
