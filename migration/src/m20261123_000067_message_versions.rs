//! Adds `version` to messages, which counts the changes of the shown text, and `edited_by` to
//! messages and swipes, so that an edit of an older text can be rejected.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::big_integer;
use sea_orm_migration::schema::big_integer_null;

const MESSAGES: &str = "messages";
const SWIPES: &str = "message_swipes";
const VERSION: &str = "version";
const EDITED_BY: &str = "edited_by";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // No foreign key: a membership is never deleted before its space, and SQLite could not add
        // one to a table that exists.
        for (name, column) in [
            (MESSAGES, big_integer(VERSION).default(1).take()),
            (MESSAGES, big_integer_null(EDITED_BY)),
            (SWIPES, big_integer_null(EDITED_BY)),
        ] {
            let table = Table::alter().table(name).add_column(column).to_owned();
            manager.alter_table(table).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, column) in [
            (SWIPES, EDITED_BY),
            (MESSAGES, EDITED_BY),
            (MESSAGES, VERSION),
        ] {
            let table = Table::alter().table(name).drop_column(column).to_owned();
            manager.alter_table(table).await?;
        }
        Ok(())
    }
}
