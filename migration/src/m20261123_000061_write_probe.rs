//! Creates the table `write_probe`, into which the server writes a test row after a failed write,
//! to find out whether writes succeed again.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const TABLE: &str = "write_probe";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut table = Table::create();
        table
            .table(TABLE)
            .col(big_integer("id").primary_key())
            .col(text("filler"));
        manager.create_table(table.take()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[TABLE]).await
    }
}
