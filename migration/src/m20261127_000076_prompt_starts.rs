//! Adds to conversations the messages at which the histories of their prompts begin.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::json_binary;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let starts = json_binary("prompt_starts").default("[]").take();
        let add = Table::alter()
            .table("conversations")
            .add_column(starts)
            .take();
        manager.alter_table(add).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Table::alter()
            .table("conversations")
            .drop_column("prompt_starts")
            .take();
        manager.alter_table(drop).await
    }
}
