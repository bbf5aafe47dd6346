//! Adds the column `is_remembered` to messages: whether memories are made from them and whether summaries
//! cover them.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::boolean;

const MESSAGES: &str = "messages";
const COLUMN: &str = "is_remembered";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = boolean(COLUMN).default(true).take();
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
