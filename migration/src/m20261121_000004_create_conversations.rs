//! Creates the table `conversations`: the roots, branches and threads of a space. Their messages
//! are added by a later migration.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(conversations()).await?;
        manager
            .create_index(index(
                "conversations_of_a_space",
                "conversations",
                &["space_id"],
            ))
            .await?;
        manager
            .create_index(index(
                "children_of_a_conversation",
                "conversations",
                &["parent_conversation_id"],
            ))
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &["conversations"]).await
    }
}

fn conversations() -> TableCreateStatement {
    Table::create()
        .table("conversations")
        .col(id())
        .col(big_integer("space_id"))
        .col(word("kind", "root", &["root", "branch", "thread"]))
        .col(text("title").default(""))
        .col(big_integer_null("parent_conversation_id"))
        // A message; its table comes later, and messages are only ever deleted with their conversation.
        .col(big_integer_null("forked_from_message_id"))
        .col(big_integer("rev").default(0))
        .col(big_integer("last_seq").default(0))
        .col(document("settings"))
        .col(document("variables"))
        .col(instant("created_at"))
        .col(instant_null("archived_at"))
        .foreign_key(&mut refers(
            "conversations",
            "space_id",
            "spaces",
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refers(
            "conversations",
            "parent_conversation_id",
            "conversations",
            ForeignKeyAction::Cascade,
        ))
        .take()
}
