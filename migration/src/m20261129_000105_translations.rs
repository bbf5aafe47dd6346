//! Creates the table `message_translations`: the translations of messages. A row without a text is a
//! translation that a node is making, under a lease.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const TRANSLATIONS: &str = "message_translations";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let translations = Table::create()
            .table(TRANSLATIONS)
            .col(big_integer("message_id"))
            .col(big_integer("version"))
            .col(string_len("language", 35))
            .col(text_null("text"))
            .col(big_integer("token_count").default(0))
            .col(big_integer_null("provider_id"))
            .col(big_integer("lease").default(1))
            .col(instant("heartbeat_at"))
            .col(instant("created_at"))
            .primary_key(
                &mut Index::create()
                    .name("one_translation_per_version_and_language")
                    .col("message_id")
                    .col("version")
                    .col("language")
                    .take(),
            )
            .foreign_key(&mut refers(
                TRANSLATIONS,
                "message_id",
                "messages",
                ForeignKeyAction::Cascade,
            ))
            .foreign_key(&mut refers(
                TRANSLATIONS,
                "provider_id",
                "llm_providers",
                ForeignKeyAction::SetNull,
            ))
            .take();
        manager.create_table(translations).await?;
        let by_provider = index("translations_by_provider", TRANSLATIONS, &["provider_id"]);
        manager.create_index(by_provider).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[TRANSLATIONS]).await
    }
}
