//! Creates the tables of memories: what is remembered about a space, its sources and vectors, and the
//! tasks that learn from messages. Adds the version of the memories to spaces, and to conversations
//! the first message that is not learned from yet.
//!
//! `spaces.memory_version` grows with each change of a memory, and a changed memory gets the new
//! version, so that a node can keep the memories of a space and load only what changed. A deleted row
//! leaves no such trace; a trigger therefore sets `memory_reset_version`, also for a row that is
//! deleted with its conversation or membership.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;
use sea_orm_migration::sea_orm::DatabaseBackend;

const MEMORIES: &str = "memories";
const SOURCES: &str = "memory_sources";
const AUDIENCE: &str = "memory_audience";
const MODELS: &str = "embedding_models";
const VECTORS: &str = "memory_vectors";
const TASKS: &str = "memory_tasks";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in added_columns() {
            let add = Table::alter().table(table).add_column(column).take();
            manager.alter_table(add).await?;
        }
        for table in [
            memories(),
            sources(),
            audience(),
            models(),
            vectors(),
            tasks(),
        ] {
            manager.create_table(table).await?;
        }
        for index in indexes() {
            manager.create_index(index).await?;
        }
        match manager.get_database_backend() {
            DatabaseBackend::Postgres => execute(manager, &POSTGRES_UP).await,
            _ => execute(manager, &SQLITE_UP).await,
        }
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        match manager.get_database_backend() {
            DatabaseBackend::Postgres => execute(manager, &POSTGRES_DOWN).await?,
            _ => execute(manager, &SQLITE_DOWN).await?,
        }
        drop_all(
            manager,
            &[TASKS, VECTORS, MODELS, AUDIENCE, SOURCES, MEMORIES],
        )
        .await?;
        for (table, column) in [
            ("conversations", "unlearned_from_seq"),
            ("spaces", "memory_reset_version"),
            ("spaces", "memory_version"),
        ] {
            let drop = Table::alter().table(table).drop_column(column).take();
            manager.alter_table(drop).await?;
        }
        Ok(())
    }
}

fn added_columns() -> [(&'static str, ColumnDef); 3] {
    [
        ("spaces", big_integer("memory_version").default(0).take()),
        (
            "spaces",
            big_integer("memory_reset_version").default(0).take(),
        ),
        ("conversations", big_integer_null("unlearned_from_seq")),
    ]
}

fn memories() -> TableCreateStatement {
    let mut table = Table::create();
    table
        .table(MEMORIES)
        .col(id())
        .col(big_integer("space_id"))
        .col(big_integer_null("space_membership_id"))
        .col(big_integer_null("about_membership_id"))
        .col(big_integer_null("conversation_id"))
        .col(big_integer_null("source_from_seq"))
        .col(big_integer_null("source_to_seq"))
        .col(word(
            "kind",
            "snippet",
            &["relation", "preference", "event", "snippet"],
        ))
        .col(word(
            "origin",
            "person",
            &["extracted", "snippet", "person", "tool", "imported"],
        ))
        .col(text("content"))
        .col(
            double("importance")
                .check(Expr::col("importance").between(0.0, 1.0))
                .take(),
        )
        .col(string_len("content_hash", 64))
        .col(string_len("audience_hash", 64).default("").take())
        .col(boolean("is_pinned").default(false).take())
        .col(big_integer("token_count"))
        .col(big_integer("recall_count").default(0).take())
        .col(instant_null("last_recalled_at"))
        .col(big_integer_null("created_by"))
        .col(big_integer_null("edited_by"))
        .col(big_integer("version").default(1).take())
        .col(big_integer("space_version"))
        .col(instant("created_at"))
        .col(instant("updated_at"))
        .col(instant_null("deleted_at"));
    for (column, of, on_delete) in [
        ("space_id", "spaces", ForeignKeyAction::Cascade),
        (
            "space_membership_id",
            "space_memberships",
            ForeignKeyAction::Cascade,
        ),
        (
            "about_membership_id",
            "space_memberships",
            ForeignKeyAction::SetNull,
        ),
        (
            "conversation_id",
            "conversations",
            ForeignKeyAction::Cascade,
        ),
        ("created_by", "users", ForeignKeyAction::SetNull),
        ("edited_by", "users", ForeignKeyAction::SetNull),
    ] {
        table.foreign_key(&mut refers(MEMORIES, column, of, on_delete));
    }
    table.take()
}

fn sources() -> TableCreateStatement {
    pair(SOURCES, ("memory_id", MEMORIES), ("message_id", "messages"))
}

fn audience() -> TableCreateStatement {
    pair(
        AUDIENCE,
        ("memory_id", MEMORIES),
        ("space_membership_id", "space_memberships"),
    )
}

/// A table of pairs, each deleted with either of what it connects.
fn pair(
    name: &'static str,
    one: (&'static str, &'static str),
    other: (&'static str, &'static str),
) -> TableCreateStatement {
    let cascade = ForeignKeyAction::Cascade;
    Table::create()
        .table(name)
        .col(big_integer(one.0))
        .col(big_integer(other.0))
        .primary_key(Index::create().col(one.0).col(other.0))
        .foreign_key(&mut refers(name, one.0, one.1, cascade))
        .foreign_key(&mut refers(name, other.0, other.1, cascade))
        .take()
}

fn models() -> TableCreateStatement {
    Table::create()
        .table(MODELS)
        .col(id())
        .col(text("name"))
        .col(string_len("base_url_hash", 64))
        .col(big_integer("dimensions"))
        .col(double("score_low"))
        .col(double("score_high"))
        .take()
}

fn vectors() -> TableCreateStatement {
    let cascade = ForeignKeyAction::Cascade;
    Table::create()
        .table(VECTORS)
        .col(big_integer("memory_id"))
        .col(big_integer("embedding_model_id"))
        // 32-bit floats, little-endian, of length 1 together.
        .col(ColumnDef::new("embedding").blob().not_null().take())
        .col(instant("created_at"))
        .primary_key(Index::create().col("memory_id").col("embedding_model_id"))
        .foreign_key(&mut refers(VECTORS, "memory_id", MEMORIES, cascade))
        .foreign_key(&mut refers(VECTORS, "embedding_model_id", MODELS, cascade))
        .take()
}

fn tasks() -> TableCreateStatement {
    let cascade = ForeignKeyAction::Cascade;
    Table::create()
        .table(TASKS)
        .col(id())
        .col(word(
            "kind",
            "extract",
            &["extract", "embed", "summarize", "refresh"],
        ))
        .col(big_integer("space_id"))
        .col(big_integer_null("conversation_id"))
        .col(big_integer_null("from_seq"))
        .col(big_integer_null("to_seq"))
        .col(word("status", "queued", &["queued", "running", "failed"]))
        .col(big_integer("attempt").default(0).take())
        .col(instant("run_after"))
        .col(string_len_null("worker_id", 64))
        .col(big_integer("lease").default(0).take())
        .col(instant_null("heartbeat_at"))
        .col(text_null("error"))
        .col(instant("created_at"))
        .foreign_key(&mut refers(TASKS, "space_id", "spaces", cascade))
        .foreign_key(&mut refers(
            TASKS,
            "conversation_id",
            "conversations",
            cascade,
        ))
        .take()
}

fn indexes() -> [IndexCreateStatement; 16] {
    let is_queued = Expr::col("status").eq("queued");
    let is_stored = || Expr::col("deleted_at").is_null();
    [
        // A unique index counts each null as another value.
        unique(
            "one_memory_per_content",
            MEMORIES,
            &["space_id", "content_hash", "audience_hash"],
        )
        .and_where(is_stored().and(Expr::col("space_membership_id").is_null()))
        .take(),
        unique(
            "one_memory_per_content_and_member",
            MEMORIES,
            &[
                "space_id",
                "space_membership_id",
                "content_hash",
                "audience_hash",
            ],
        )
        .and_where(is_stored().and(Expr::col("space_membership_id").is_not_null()))
        .take(),
        index(
            "memories_of_a_space",
            MEMORIES,
            &["space_id", "space_version"],
        ),
        index("memories_of_a_conversation", MEMORIES, &["conversation_id"]),
        index("memories_of_a_member", MEMORIES, &["space_membership_id"]),
        index(
            "memories_about_a_member",
            MEMORIES,
            &["about_membership_id"],
        ),
        index("memories_created_by_a_user", MEMORIES, &["created_by"]),
        index("memories_edited_by_a_user", MEMORIES, &["edited_by"]),
        index("vectors_of_a_model", VECTORS, &["embedding_model_id"]),
        index("memory_tasks_of_a_space", TASKS, &["space_id"]),
        index(
            "memory_tasks_of_a_conversation",
            TASKS,
            &["conversation_id"],
        ),
        index("memories_from_a_message", SOURCES, &["message_id"]),
        index(
            "memories_known_to_a_member",
            AUDIENCE,
            &["space_membership_id"],
        ),
        unique(
            "one_embedding_model_per_name",
            MODELS,
            &["name", "base_url_hash", "dimensions"],
        ),
        unique(
            "one_queued_task_per_conversation",
            TASKS,
            &["conversation_id", "kind"],
        )
        // A task that was claimed keeps its messages when it is queued again.
        .and_where(is_queued.and(Expr::col("from_seq").is_null()))
        .take(),
        index("memory_tasks_by_status", TASKS, &["status", "run_after"]),
    ]
}

async fn execute(manager: &SchemaManager<'_>, steps: &[&str]) -> Result<(), DbErr> {
    for sql in steps {
        manager.get_connection().execute_unprepared(sql).await?;
    }
    Ok(())
}

const SQLITE_UP: [&str; 1] = [
    "CREATE TRIGGER memory_delete AFTER DELETE ON memories BEGIN \
        UPDATE spaces SET memory_version = memory_version + 1, \
        memory_reset_version = memory_version + 1 WHERE id = old.space_id; END",
];

const SQLITE_DOWN: [&str; 1] = ["DROP TRIGGER memory_delete"];

const POSTGRES_UP: [&str; 2] = [
    "CREATE FUNCTION count_memory_deletion() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        UPDATE spaces SET memory_version = memory_version + 1, \
        memory_reset_version = memory_version + 1 \
        WHERE id IN (SELECT space_id FROM deleted); \
        RETURN NULL; END $$",
    "CREATE TRIGGER memory_delete AFTER DELETE ON memories REFERENCING OLD TABLE AS deleted \
        FOR EACH STATEMENT EXECUTE FUNCTION count_memory_deletion()",
];

const POSTGRES_DOWN: [&str; 2] = [
    "DROP TRIGGER memory_delete ON memories",
    "DROP FUNCTION count_memory_deletion()",
];
