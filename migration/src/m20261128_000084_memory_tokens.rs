//! Adds to spaces the tokens that model calls for memories and summaries have used. Those that were used
//! before are unknown; they are counted among the other tokens of a space.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::big_integer;

const SPACES: &str = "spaces";
const COLUMN: &str = "memory_tokens_used";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = big_integer(COLUMN).default(0).take();
        let add = Table::alter().table(SPACES).add_column(column).to_owned();
        manager.alter_table(add).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Table::alter().table(SPACES).drop_column(COLUMN).to_owned();
        manager.alter_table(drop).await
    }
}
