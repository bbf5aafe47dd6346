//! Creates the table `message_revisions`, the texts that edits replaced, and adds `swipe_chosen_by` to
//! messages: the membership that selected the shown swipe.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, text};

const MESSAGES: &str = "messages";
const CHOSEN_BY: &str = "swipe_chosen_by";
const REVISIONS: &str = "message_revisions";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // No foreign key: a membership is never deleted before its space, and SQLite could not add
        // one to a table that exists.
        let add = Table::alter()
            .table(MESSAGES)
            .add_column(big_integer_null(CHOSEN_BY))
            .to_owned();
        manager.alter_table(add).await?;
        manager.create_table(message_revisions()).await?;
        let by_version = unique(
            "one_revision_per_version_of_a_message",
            REVISIONS,
            &["message_id", "version"],
        );
        manager.create_index(by_version).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[REVISIONS]).await?;
        let drop = Table::alter()
            .table(MESSAGES)
            .drop_column(CHOSEN_BY)
            .to_owned();
        manager.alter_table(drop).await
    }
}

fn message_revisions() -> TableCreateStatement {
    Table::create()
        .table(REVISIONS)
        .col(id())
        .col(big_integer("message_id"))
        .col(big_integer("version"))
        .col(text("content"))
        .col(instant("replaced_at"))
        .col(big_integer_null("replaced_by"))
        .foreign_key(&mut refers(
            REVISIONS,
            "message_id",
            MESSAGES,
            ForeignKeyAction::Cascade,
        ))
        .take()
}
