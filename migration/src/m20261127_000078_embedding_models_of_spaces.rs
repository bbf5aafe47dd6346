//! Adds to spaces the embedding model of a provider to which their vectors belong, and allows one task
//! per space that makes vectors.

use crate::columns::unique;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::big_integer_null;

const SPACES: &str = "spaces";
const MODEL: &str = "embedding_model_id";
const TASKS: &str = "memory_tasks";
const ONE_TASK: &str = "one_embedding_task_per_space";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // Without a foreign key, which SQLite cannot add; the rows of models are never deleted.
        let add = Table::alter()
            .table(SPACES)
            .add_column(big_integer_null(MODEL))
            .to_owned();
        manager.alter_table(add).await?;
        let makes_vectors = Expr::col("kind").is_in(["embed", "refresh"]);
        let index = unique(ONE_TASK, TASKS, &["space_id"])
            .and_where(makes_vectors)
            .take();
        manager.create_index(index).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let index = Index::drop().name(ONE_TASK).table(TASKS).to_owned();
        manager.drop_index(index).await?;
        let drop = Table::alter().table(SPACES).drop_column(MODEL).to_owned();
        manager.alter_table(drop).await
    }
}
