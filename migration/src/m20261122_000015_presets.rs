//! Creates the table `presets` (prompt orders, prompt texts and samplers in users' libraries), and
//! adds an index on the preset of memberships.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(presets()).await?;
        manager
            .create_index(index("presets_of_an_owner", "presets", &["owner_id"]))
            .await?;
        // Whoever opens a preset may sit where it is used.
        let used = index("seats_of_a_preset", "space_memberships", &["preset_id"])
            .and_where(Expr::col("preset_id").is_not_null())
            .take();
        manager.create_index(used).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let used = Index::drop()
            .name("seats_of_a_preset")
            .table("space_memberships")
            .to_owned();
        manager.drop_index(used).await?;
        drop_all(manager, &["presets"]).await
    }
}

fn presets() -> TableCreateStatement {
    Table::create()
        .table("presets")
        .col(id())
        .col(big_integer_null("owner_id"))
        .col(text("name"))
        .col(json_binary("document"))
        // What the file said that it came from and we have no use for.
        .col(json_binary_null("origin"))
        .col(word("status", "active", &["active", "deleted"]))
        .col(instant("created_at"))
        .col(instant("updated_at"))
        .foreign_key(&mut refers(
            "presets",
            "owner_id",
            "users",
            ForeignKeyAction::SetNull,
        ))
        .take()
}
