//! Adds the column `is_ooc` to messages: whether a message is out of character, so that models do not
//! read it and the schedule ignores it. The indexes by which the schedule finds its newest messages
//! leave these messages out.

use crate::columns::index;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::boolean;

const MESSAGES: &str = "messages";
const COLUMN: &str = "is_ooc";
const BY_ROLE: &str = "visible_messages_by_role";
const BY_ROLE_COLUMNS: [&str; 4] = ["conversation_id", "role", "seq", "space_membership_id"];
const SCHEDULED: &str = "scheduled_messages";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = boolean(COLUMN).default(false).take();
        let add = Table::alter().table(MESSAGES).add_column(column).to_owned();
        manager.alter_table(add).await?;
        manager.drop_index(drop_index(BY_ROLE)).await?;
        let is_scheduled = || Expr::cust("visibility <> 'hidden' AND NOT is_ooc");
        let by_role = index(BY_ROLE, MESSAGES, &BY_ROLE_COLUMNS);
        let scheduled = index(SCHEDULED, MESSAGES, &["conversation_id", "seq"]);
        for mut index in [by_role, scheduled] {
            let index = index.and_where(is_scheduled()).take();
            manager.create_index(index).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for name in [BY_ROLE, SCHEDULED] {
            manager.drop_index(drop_index(name)).await?;
        }
        let is_visible = Expr::col("visibility").ne("hidden");
        let by_role = index(BY_ROLE, MESSAGES, &BY_ROLE_COLUMNS)
            .and_where(is_visible)
            .take();
        manager.create_index(by_role).await?;
        let drop = Table::alter()
            .table(MESSAGES)
            .drop_column(COLUMN)
            .to_owned();
        manager.alter_table(drop).await
    }
}

fn drop_index(name: &'static str) -> IndexDropStatement {
    Index::drop().name(name).table(MESSAGES).to_owned()
}
