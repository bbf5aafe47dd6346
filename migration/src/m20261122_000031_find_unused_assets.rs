//! Adds indexes on the age of assets and on the avatar and status of characters, by which garbage
//! collection finds unused rows without reading their content.

use crate::columns::*;
use sea_orm_migration::prelude::*;

const INDEXES: [(&str, &str, &str); 3] = [
    ("assets_by_age", "assets", "created_at"),
    ("characters_with_a_picture", "characters", "avatar_id"),
    ("characters_by_status", "characters", "status"),
];

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, table, column) in INDEXES {
            manager.create_index(index(name, table, &[column])).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, table, _) in INDEXES {
            let gone = Index::drop().name(name).table(table).to_owned();
            manager.drop_index(gone).await?;
        }
        Ok(())
    }
}
