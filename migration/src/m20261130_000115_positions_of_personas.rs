//! Adds to personas a title for the list of their user, and where their description is in a prompt:
//! `position`, and `depth` and `role` for those among the messages.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::string_len;

const PERSONAS: &str = "personas";
const POSITIONS: [&str; 5] = ["in_prompt", "note_top", "note_bottom", "at_depth", "none"];
const ROLES: [&str; 3] = ["system", "user", "assistant"];

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in [
            string_len("title", 100).default("").take(),
            word("position", "in_prompt", &POSITIONS),
            between("depth", 2, 0, 10_000),
            word("role", "system", &ROLES),
        ] {
            let table = Table::alter().table(PERSONAS).add_column(column).to_owned();
            manager.alter_table(table).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in ["role", "depth", "position", "title"] {
            let table = Table::alter()
                .table(PERSONAS)
                .drop_column(column)
                .to_owned();
            manager.alter_table(table).await?;
        }
        Ok(())
    }
}
