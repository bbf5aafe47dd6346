//! Creates the table `instance_lock` unless it exists: its row names the process that owns an
//! SQLite file on a file system without file locks.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const TABLE: &str = "instance_lock";

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
            // A process that takes the file before the tables are brought up to date makes it.
            .if_not_exists()
            .col(big_integer("id").primary_key())
            .col(text("owner"))
            .col(instant("heartbeat_at"));
        manager.create_table(table.take()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[TABLE]).await
    }
}
