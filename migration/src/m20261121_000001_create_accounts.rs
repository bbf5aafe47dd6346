//! Creates the tables `users`, `sessions` and `api_keys`, with unique indexes on usernames (in one
//! case) and on the hashes of session tokens and API keys.

use crate::columns::*;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(users()).await?;
        manager.create_table(sessions()).await?;
        manager.create_table(api_keys()).await?;
        manager
            .create_index(unique("one_user_per_username", "users", &["username_key"]))
            .await?;
        manager
            .create_index(unique("one_session_per_token", "sessions", &["token_hash"]))
            .await?;
        manager
            .create_index(index("sessions_of_a_user", "sessions", &["user_id"]))
            .await?;
        manager
            .create_index(unique("one_api_key_per_hash", "api_keys", &["key_hash"]))
            .await?;
        manager
            .create_index(index("api_keys_of_a_user", "api_keys", &["user_id"]))
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        drop_all(manager, &["api_keys", "sessions", "users"]).await
    }
}

fn users() -> TableCreateStatement {
    Table::create()
        .table("users")
        .col(id())
        .col(string_len("username", 32))
        // The name folded to one case: what must be unique, on both databases alike.
        .col(string_len("username_key", 64))
        .col(text("display_name"))
        .col(text_null("password_hash"))
        .col(word("role", "user", &["admin", "user"]))
        .col(word("status", "active", &["active", "disabled"]))
        .col(string_len("locale", 16).default("en"))
        .col(instant("created_at"))
        .take()
}

fn sessions() -> TableCreateStatement {
    Table::create()
        .table("sessions")
        .col(id())
        .col(big_integer("user_id"))
        .col(string_len("token_hash", 64))
        .col(instant("created_at"))
        .col(instant("last_seen_at"))
        .col(instant("expires_at"))
        .col(text("user_agent").default(""))
        .foreign_key(&mut refers(
            "sessions",
            "user_id",
            "users",
            ForeignKeyAction::Cascade,
        ))
        .take()
}

fn api_keys() -> TableCreateStatement {
    Table::create()
        .table("api_keys")
        .col(id())
        .col(big_integer("user_id"))
        .col(text("name"))
        .col(string_len("key_hash", 64))
        .col(string_len("prefix", 16))
        .col(instant("created_at"))
        .col(instant_null("last_used_at"))
        .col(instant_null("revoked_at"))
        .foreign_key(&mut refers(
            "api_keys",
            "user_id",
            "users",
            ForeignKeyAction::Cascade,
        ))
        .take()
}
