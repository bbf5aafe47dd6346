//! Adds to messages the persona under which they were posted, with its name and picture as they were
//! then, and to memberships the persona of a person's next posts.

use crate::columns::index;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer_null, string_len_null};

const MESSAGES: &str = "messages";
const MEMBERSHIPS: &str = "space_memberships";
const BY_PICTURE: &str = "messages_by_persona_picture";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // Without foreign keys, which SQLite cannot add; the rows of personas are kept.
        for (name, column) in [
            (MESSAGES, big_integer_null("persona_id")),
            (MESSAGES, string_len_null("persona_name", 100)),
            (MESSAGES, string_len_null("persona_avatar", 64)),
            (MEMBERSHIPS, big_integer_null("active_persona_id")),
        ] {
            let table = Table::alter().table(name).add_column(column).to_owned();
            manager.alter_table(table).await?;
        }
        let by_picture = index(BY_PICTURE, MESSAGES, &["persona_id", "persona_avatar"])
            .and_where(Expr::cust("persona_avatar IS NOT NULL"))
            .take();
        manager.create_index(by_picture).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let by_picture = Index::drop().name(BY_PICTURE).table(MESSAGES).to_owned();
        manager.drop_index(by_picture).await?;
        for (name, column) in [
            (MEMBERSHIPS, "active_persona_id"),
            (MESSAGES, "persona_avatar"),
            (MESSAGES, "persona_name"),
            (MESSAGES, "persona_id"),
        ] {
            let table = Table::alter().table(name).drop_column(column).to_owned();
            manager.alter_table(table).await?;
        }
        Ok(())
    }
}
