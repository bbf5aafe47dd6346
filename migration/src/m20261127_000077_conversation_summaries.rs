//! Creates the table of summaries: what the messages before the history of a prompt contained. Adds to
//! conversations from which message on and up to which one they are summarized.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const SUMMARIES: &str = "conversation_summaries";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in added_columns() {
            let add = Table::alter()
                .table("conversations")
                .add_column(column)
                .take();
            manager.alter_table(add).await?;
        }
        manager.create_table(summaries()).await?;
        for index in indexes() {
            manager.create_index(index).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[SUMMARIES]).await?;
        for column in ["summary_goal_seq", "summary_from_seq"] {
            let drop = Table::alter()
                .table("conversations")
                .drop_column(column)
                .take();
            manager.alter_table(drop).await?;
        }
        Ok(())
    }
}

fn added_columns() -> [ColumnDef; 2] {
    [
        big_integer("summary_from_seq").default(1).take(),
        big_integer("summary_goal_seq").default(0).take(),
    ]
}

fn summaries() -> TableCreateStatement {
    Table::create()
        .table(SUMMARIES)
        .col(id())
        .col(big_integer("conversation_id"))
        // 0: of a part of the messages; 1: of everything up to a message.
        .col(between("level", 0, 0, 1))
        .col(big_integer("version"))
        .col(word(
            "status",
            "current",
            &["current", "stale", "superseded"],
        ))
        .col(big_integer("from_seq"))
        .col(big_integer("to_seq"))
        .col(text("content"))
        .col(json_binary("pinned_facts").default("[]").take())
        .col(big_integer("token_count"))
        .col(word("origin", "model", &["model", "person"]))
        .col(text_null("model"))
        .col(big_integer_null("created_by"))
        .col(boolean("is_usable").default(true).take())
        .col(boolean("is_regeneration_requested").default(false).take())
        .col(instant("created_at"))
        .foreign_key(&mut refers(
            SUMMARIES,
            "conversation_id",
            "conversations",
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refers(
            SUMMARIES,
            "created_by",
            "users",
            ForeignKeyAction::SetNull,
        ))
        .take()
}

fn indexes() -> [IndexCreateStatement; 3] {
    let place = ["conversation_id", "level", "from_seq"];
    [
        unique("one_summary_in_use_per_place", SUMMARIES, &place)
            .and_where(Expr::col("status").ne("superseded"))
            .take(),
        index("summaries_of_a_conversation", SUMMARIES, &place),
        index("summaries_created_by_a_user", SUMMARIES, &["created_by"]),
    ]
}
