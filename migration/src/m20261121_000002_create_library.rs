//! Creates the tables `assets` (each file once, by its SHA-256), `characters` (the cards of users)
//! and `llm_providers` (model providers, at most one of them the default).

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
        manager.create_table(assets()).await?;
        manager.create_table(characters()).await?;
        manager.create_table(llm_providers()).await?;
        manager
            .create_index(unique("one_asset_per_content", "assets", &["sha256"]))
            .await?;
        manager
            .create_index(index("characters_of_an_owner", "characters", &["owner_id"]))
            .await?;
        let mut one_default = unique("one_default_llm_provider", "llm_providers", &["is_default"]);
        manager
            .create_index(
                one_default
                    .and_where(Expr::col("is_default").eq(true))
                    .take(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &["llm_providers", "characters", "assets"]).await
    }
}

fn assets() -> TableCreateStatement {
    Table::create()
        .table("assets")
        .col(id())
        .col(string_len("sha256", 64))
        .col(string_len("media_type", 100))
        .col(blob("bytes"))
        .col(instant("created_at"))
        .take()
}

fn characters() -> TableCreateStatement {
    Table::create()
        .table("characters")
        .col(id())
        .col(big_integer_null("owner_id"))
        .col(text("name"))
        .col(json_binary("card"))
        .col(string_len("spec_version", 16))
        .col(big_integer_null("avatar_id"))
        .col(string_len("content_hash", 64))
        .col(word("status", "active", &["active", "deleted"]))
        .col(instant("created_at"))
        .foreign_key(&mut refers(
            "characters",
            "owner_id",
            "users",
            ForeignKeyAction::SetNull,
        ))
        .foreign_key(&mut refers(
            "characters",
            "avatar_id",
            "assets",
            ForeignKeyAction::SetNull,
        ))
        .take()
}

fn llm_providers() -> TableCreateStatement {
    let kinds = [
        "demo",
        "openai_compatible",
        "openai",
        "anthropic",
        "gemini",
        "ollama",
    ];
    Table::create()
        .table("llm_providers")
        .col(id())
        .col(text("name"))
        .col(word("kind", "openai_compatible", &kinds))
        .col(text_null("base_url"))
        // Sealed: see providers/seal.rs.
        .col(text_null("api_key"))
        .col(text("model"))
        .col(boolean("is_default").default(false))
        .col(boolean("disabled").default(false))
        .col(document("settings"))
        .col(instant("created_at"))
        .take()
}
