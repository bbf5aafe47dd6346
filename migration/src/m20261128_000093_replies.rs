//! Adds the column `reply_to_message_id` to messages: the message of the same conversation that a post
//! answers.
//!
//! There is no foreign key: a message is deleted only with its whole conversation.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::big_integer_null;

const MESSAGES: &str = "messages";
const COLUMN: &str = "reply_to_message_id";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = big_integer_null(COLUMN);
        let add = Table::alter().table(MESSAGES).add_column(column).to_owned();
        manager.alter_table(add).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Table::alter()
            .table(MESSAGES)
            .drop_column(COLUMN)
            .to_owned();
        manager.alter_table(drop).await
    }
}
