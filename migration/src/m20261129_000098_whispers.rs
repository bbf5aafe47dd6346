//! Adds whispers: `audience` of messages, rounds, runs and tool approvals, the memberships that see them (`,3,7,`; null:
//! everyone), and `is_for_people` of messages: whether no character is in the audience. The indexes by
//! which the schedule finds its newest messages leave those messages out.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{boolean, text_null};

use crate::columns::index;

const MESSAGES: &str = "messages";
const AUDIENCE: &str = "audience";
const WITH_AUDIENCE: [&str; 4] = [
    MESSAGES,
    "conversation_rounds",
    "conversation_runs",
    "tool_approvals",
];
const FOR_PEOPLE: &str = "is_for_people";
const BY_ROLE: &str = "visible_messages_by_role";
const BY_ROLE_COLUMNS: [&str; 4] = ["conversation_id", "role", "seq", "space_membership_id"];
const SCHEDULED: &str = "scheduled_messages";
const SCHEDULED_COLUMNS: [&str; 2] = ["conversation_id", "seq"];
const IS_SCHEDULED_BEFORE: &str = "visibility <> 'hidden' AND NOT is_ooc";
const IS_SCHEDULED: &str = "visibility <> 'hidden' AND NOT is_ooc AND NOT is_for_people";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in WITH_AUDIENCE {
            add(manager, table, text_null(AUDIENCE)).await?;
        }
        let for_people = boolean(FOR_PEOPLE).default(false).take();
        add(manager, MESSAGES, for_people).await?;
        replace_indexes(manager, IS_SCHEDULED).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        replace_indexes(manager, IS_SCHEDULED_BEFORE).await?;
        // Without audiences everyone would see them.
        let hide = "UPDATE messages SET visibility = 'hidden' WHERE audience IS NOT NULL";
        manager.get_connection().execute_unprepared(hide).await?;
        drop(manager, MESSAGES, FOR_PEOPLE).await?;
        for table in WITH_AUDIENCE {
            drop(manager, table, AUDIENCE).await?;
        }
        Ok(())
    }
}

async fn add(
    manager: &SchemaManager<'_>,
    table: &'static str,
    column: ColumnDef,
) -> Result<(), DbErr> {
    let add = Table::alter().table(table).add_column(column).to_owned();
    manager.alter_table(add).await
}

async fn drop(
    manager: &SchemaManager<'_>,
    table: &'static str,
    column: &'static str,
) -> Result<(), DbErr> {
    let drop = Table::alter().table(table).drop_column(column).to_owned();
    manager.alter_table(drop).await
}

/// Creates the indexes of the messages that the schedule reads again, for these messages.
async fn replace_indexes(
    manager: &SchemaManager<'_>,
    is_scheduled: &'static str,
) -> Result<(), DbErr> {
    let indexes: [(&str, &[&'static str]); 2] =
        [(BY_ROLE, &BY_ROLE_COLUMNS), (SCHEDULED, &SCHEDULED_COLUMNS)];
    for (name, columns) in indexes {
        let drop = Index::drop().name(name).table(MESSAGES).to_owned();
        manager.drop_index(drop).await?;
        let create = index(name, MESSAGES, columns)
            .and_where(Expr::cust(is_scheduled))
            .take();
        manager.create_index(create).await?;
    }
    Ok(())
}
