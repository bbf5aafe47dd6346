//! Creates the table `character_assets` (the assets of a character, by the paths that its card
//! uses), and adds `avatar_hash` to characters and memberships.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const LINKS: &str = "character_assets";
const SHOWN: [&str; 2] = ["characters", "space_memberships"];
const COLUMN: &str = "avatar_hash";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in SHOWN {
            let column = string_len_null(COLUMN, 64);
            let table = Table::alter().table(table).add_column(column).to_owned();
            manager.alter_table(table).await?;
        }
        let links = Table::create()
            .table(LINKS)
            .col(big_integer("character_id"))
            // The path that its card has for it; empty: the character's picture.
            .col(text("name"))
            .col(big_integer("asset_id"))
            .primary_key(Index::create().col("character_id").col("name"))
            .foreign_key(&mut refers(
                LINKS,
                "character_id",
                "characters",
                ForeignKeyAction::Cascade,
            ))
            .foreign_key(&mut refers(
                LINKS,
                "asset_id",
                "assets",
                ForeignKeyAction::Restrict,
            ))
            .take();
        manager.create_table(links).await?;
        manager
            .create_index(index("characters_with_an_asset", LINKS, &["asset_id"]))
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[LINKS]).await?;
        for table in SHOWN {
            let table = Table::alter().table(table).drop_column(COLUMN).to_owned();
            manager.alter_table(table).await?;
        }
        Ok(())
    }
}
