//! Creates the table of idempotency keys: which object a request with the header `Idempotency-Key` has
//! created, so that the same request returns it again. Keys and requests are stored as hashes.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

const KEYS: &str = "idempotency_keys";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let keys = Table::create()
            .table(KEYS)
            .col(big_integer("user_id"))
            .col(string_len("key_hash", 64))
            .col(string_len("request_hash", 64))
            .col(string_len("object_id", 64))
            .col(instant("created_at"))
            .primary_key(Index::create().col("user_id").col("key_hash"))
            .foreign_key(&mut refers(
                KEYS,
                "user_id",
                "users",
                ForeignKeyAction::Cascade,
            ))
            .take();
        manager.create_table(keys).await?;
        let by_age = index("idempotency_keys_by_age", KEYS, &["created_at"]);
        manager.create_index(by_age).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &[KEYS]).await
    }
}
