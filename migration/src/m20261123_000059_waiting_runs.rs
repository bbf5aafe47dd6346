//! Adds `waiting_for` to runs: what a running run waits for while it holds no permit, a tool
//! approval (`approval`) or a permit to continue (`place`).

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::string_len_null;

const TABLE: &str = "conversation_runs";
const COLUMN: &str = "waiting_for";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = string_len_null(COLUMN, 32)
            .check(Expr::col(COLUMN).is_in(["approval", "place"]))
            .take();
        let table = Table::alter().table(TABLE).add_column(column).to_owned();
        manager.alter_table(table).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let table = Table::alter().table(TABLE).drop_column(COLUMN).to_owned();
        manager.alter_table(table).await
    }
}
