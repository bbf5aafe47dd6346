//! Adds the settings of translations: to spaces the provider that translates and the language that
//! models read, to memberships when a person's messages are shown translated, and to users their own
//! settings, one of which is the language in which they read.

use crate::columns::{document, word};
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer_null, string_len_null};

const SPACES: &str = "spaces";
const PROVIDER: &str = "translation_provider_id";
const LANGUAGE: &str = "model_language";
const MEMBERSHIPS: &str = "space_memberships";
const TRANSLATE: &str = "translate";
const USERS: &str = "users";
const SETTINGS: &str = "settings";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let choices = ["off", "on_demand", "always"];
        // Without a foreign key, which SQLite cannot add.
        for (table, column) in [
            (SPACES, big_integer_null(PROVIDER)),
            (SPACES, string_len_null(LANGUAGE, 35)),
            (MEMBERSHIPS, word(TRANSLATE, "on_demand", &choices)),
            (USERS, document(SETTINGS)),
        ] {
            let add = Table::alter().table(table).add_column(column).to_owned();
            manager.alter_table(add).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in [
            (USERS, SETTINGS),
            (MEMBERSHIPS, TRANSLATE),
            (SPACES, LANGUAGE),
            (SPACES, PROVIDER),
        ] {
            let drop = Table::alter().table(table).drop_column(column).to_owned();
            manager.alter_table(drop).await?;
        }
        Ok(())
    }
}
