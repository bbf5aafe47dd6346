//! Creates the table `message_reactions`: who reacted to which message with which emoji. Adds the column
//! `has_reactions` to messages, so that a page without reactions needs no query for them.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const MESSAGES: &str = "messages";
const REACTIONS: &str = "message_reactions";
const COLUMN: &str = "has_reactions";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = boolean(COLUMN).default(false).take();
        let add = Table::alter().table(MESSAGES).add_column(column).to_owned();
        manager.alter_table(add).await?;
        manager.create_table(reactions()).await?;
        let of_member = index("reactions_of_member", REACTIONS, &["space_membership_id"]);
        manager.create_index(of_member).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[REACTIONS]).await?;
        let drop = Table::alter()
            .table(MESSAGES)
            .drop_column(COLUMN)
            .to_owned();
        manager.alter_table(drop).await
    }
}

fn reactions() -> TableCreateStatement {
    Table::create()
        .table(REACTIONS)
        .col(big_integer("message_id"))
        .col(big_integer("space_membership_id"))
        .col(string_len("emoji", 32))
        .col(instant("created_at"))
        .primary_key(
            &mut Index::create()
                .name("one_reaction_per_emoji")
                .col("message_id")
                .col("space_membership_id")
                .col("emoji")
                .take(),
        )
        .foreign_key(&mut refers(
            REACTIONS,
            "message_id",
            MESSAGES,
            ForeignKeyAction::Cascade,
        ))
        .foreign_key(&mut refers(
            REACTIONS,
            "space_membership_id",
            "space_memberships",
            ForeignKeyAction::Cascade,
        ))
        .take()
}
