//! Adds `run_seq` to runs, their unique number in the conversation, and `last_run_seq` to
//! conversations, both filled for existing rows, so that the order of runs does not depend on the
//! clocks of the nodes. Changes the indexes on runs accordingly.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::big_integer;

const RUNS: &str = "conversation_runs";
const BY_NUMBER: &str = "one_run_per_number";
const BY_STATUS: &str = "runs_of_a_conversation_by_status";
/// Every reader of this one orders by the number now.
const BY_ID: &str = "runs_of_a_conversation";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in COLUMNS {
            let number = big_integer(column).default(0).take();
            let add = Table::alter().table(table).add_column(number).to_owned();
            manager.alter_table(add).await?;
        }
        let connection = manager.get_connection();
        connection.execute_unprepared(NUMBER_RUNS).await?;
        let numbers = unique(BY_NUMBER, RUNS, &["conversation_id", "run_seq"]);
        manager.create_index(numbers).await?;
        connection.execute_unprepared(NUMBER_CONVERSATIONS).await?;
        let columns = ["conversation_id", "status", "run_seq"];
        manager
            .create_index(index(BY_STATUS, RUNS, &columns))
            .await?;
        drop_index(manager, BY_ID).await?;
        for (name, columns) in DUE {
            drop_index(manager, name).await?;
            let since = "(COALESCE(run_after, created_at))";
            order_queued(manager, name, &columns.replace("run_after", since)).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, columns) in DUE {
            drop_index(manager, name).await?;
            order_queued(manager, name, columns).await?;
        }
        let by_id = index(BY_ID, RUNS, &["conversation_id", "id"]);
        manager.create_index(by_id).await?;
        drop_index(manager, BY_STATUS).await?;
        drop_index(manager, BY_NUMBER).await?;
        for (table, column) in COLUMNS {
            let drop = Table::alter().table(table).drop_column(column).to_owned();
            manager.alter_table(drop).await?;
        }
        Ok(())
    }
}

/// What is added, as table and column.
const COLUMNS: [(&str, &str); 2] = [("conversations", "last_run_seq"), (RUNS, "run_seq")];

const NUMBER_RUNS: &str = "UPDATE conversation_runs SET run_seq = numbered.n FROM \
    (SELECT id AS run_id, row_number() OVER (PARTITION BY conversation_id ORDER BY created_at, id) AS n \
    FROM conversation_runs) AS numbered WHERE numbered.run_id = conversation_runs.id";

const NUMBER_CONVERSATIONS: &str = "UPDATE conversations SET last_run_seq = \
    COALESCE((SELECT max(run_seq) FROM conversation_runs WHERE conversation_id = conversations.id), 0)";

/// The indexes of queued runs, and their columns as they were. A run without delay has no `run_after`
/// from now on, and stands where it was planned.
const DUE: [(&str, &str); 2] = [
    ("queued_runs_by_due_time", "run_after"),
    ("queued_runs_by_space", "space_id, run_after"),
];

async fn order_queued(
    manager: &SchemaManager<'_>,
    name: &'static str,
    columns: &str,
) -> Result<(), DbErr> {
    let create = format!("CREATE INDEX {name} ON {RUNS} ({columns}) WHERE status = 'queued'");
    let created = manager.get_connection().execute_unprepared(&create).await;
    created.map(|_| ())
}

async fn drop_index(manager: &SchemaManager<'_>, name: &'static str) -> Result<(), DbErr> {
    let index = Index::drop().name(name).table(RUNS).to_owned();
    manager.drop_index(index).await
}
