//! Adds `lease` to jobs, the number of the claim, so that a worker that lost a job and resumes
//! changes nothing, even if its own node has claimed the job again.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const TABLE: &str = "jobs";
const COLUMN: &str = "lease";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let add = Table::alter()
            .table(TABLE)
            .add_column(big_integer(COLUMN).default(0).take())
            .to_owned();
        manager.alter_table(add).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Table::alter().table(TABLE).drop_column(COLUMN).to_owned();
        manager.alter_table(drop).await
    }
}
