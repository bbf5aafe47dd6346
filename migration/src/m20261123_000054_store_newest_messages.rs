//! Adds the newest visible message of each role to conversations (`last_assistant_seq` with its
//! speaker, and `last_user_seq`), computed from the messages, and two indexes on visible messages.

use crate::columns::index;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::big_integer_null;

const CONVERSATIONS: &str = "conversations";
const MESSAGES: &str = "messages";
const COLUMNS: [&str; 3] = [
    "last_speaker_membership_id",
    "last_assistant_seq",
    "last_user_seq",
];
const INDEXES: [(&str, &[&str]); 2] = [
    ("visible_messages", &["conversation_id", "seq"]),
    (
        "visible_messages_by_role",
        &["conversation_id", "role", "seq", "space_membership_id"],
    ),
];

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, columns) in INDEXES {
            let visible = Expr::col("visibility").ne("hidden");
            let index = index(name, MESSAGES, columns).and_where(visible).take();
            manager.create_index(index).await?;
        }
        for column in COLUMNS {
            let add = Table::alter()
                .table(CONVERSATIONS)
                .add_column(big_integer_null(column))
                .take();
            manager.alter_table(add).await?;
        }
        let connection = manager.get_connection();
        connection.execute_unprepared(FILL_SEQS).await?;
        connection.execute_unprepared(FILL_SPEAKERS).await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in COLUMNS {
            let drop = Table::alter()
                .table(CONVERSATIONS)
                .drop_column(column)
                .take();
            manager.alter_table(drop).await?;
        }
        for (name, _) in INDEXES {
            let drop = Index::drop().name(name).table(MESSAGES).to_owned();
            manager.drop_index(drop).await?;
        }
        Ok(())
    }
}

const FILL_SEQS: &str = "UPDATE conversations SET \
    last_assistant_seq = (SELECT MAX(seq) FROM messages \
      WHERE messages.conversation_id = conversations.id AND role = 'assistant' AND visibility <> 'hidden'), \
    last_user_seq = (SELECT MAX(seq) FROM messages \
      WHERE messages.conversation_id = conversations.id AND role = 'user' AND visibility <> 'hidden')";

const FILL_SPEAKERS: &str = "UPDATE conversations SET \
    last_speaker_membership_id = (SELECT space_membership_id FROM messages \
      WHERE messages.conversation_id = conversations.id AND messages.seq = conversations.last_assistant_seq) \
    WHERE last_assistant_seq IS NOT NULL";
