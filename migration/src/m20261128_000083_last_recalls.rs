//! Adds to memories the run whose prompt contained them last.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::uuid_null;

const MEMORIES: &str = "memories";
const COLUMN: &str = "last_recall_run_id";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // Without a foreign key, which SQLite cannot add; readers ignore the id of a deleted run.
        let column = uuid_null(COLUMN);
        let add = Table::alter().table(MEMORIES).add_column(column).to_owned();
        manager.alter_table(add).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Table::alter()
            .table(MEMORIES)
            .drop_column(COLUMN)
            .to_owned();
        manager.alter_table(drop).await
    }
}
