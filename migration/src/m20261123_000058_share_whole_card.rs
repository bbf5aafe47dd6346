//! Adds `share_whole_card` to characters: whether everyone who shares a space with the character
//! may read its whole card.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::boolean;

const TABLE: &str = "characters";
const COLUMN: &str = "share_whole_card";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = boolean(COLUMN).default(false).take();
        let table = Table::alter().table(TABLE).add_column(column).to_owned();
        manager.alter_table(table).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let table = Table::alter().table(TABLE).drop_column(COLUMN).to_owned();
        manager.alter_table(table).await
    }
}
