//! Finds the newest assistant message and user message of a conversation that the schedule reads, and
//! stores their positions in its row. It reads no message that is hidden or out of character.
//!
//! **Invariant:** the stored columns equal what [`find`] returns. They change in the transaction
//! that appends, hides, restores, marks, clones or imports a message.

use base::ids::{ConversationId, MembershipId};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};

use crate::conversations::message::{Column, MessageRole};
use crate::conversations::{conversation, timeline};

/// What a conversation stores about its newest messages that the schedule reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewestMessages {
    /// The author of the newest assistant message.
    pub last_speaker: Option<MembershipId>,
    /// The `seq` of that message.
    pub last_assistant_seq: Option<i64>,
    /// The `seq` of the newest message of role `user`.
    pub last_user_seq: Option<i64>,
}

impl NewestMessages {
    /// Returns the values stored in the row.
    pub fn from_row(row: &conversation::Model) -> Self {
        Self {
            last_speaker: row.last_speaker_membership_id,
            last_assistant_seq: row.last_assistant_seq,
            last_user_seq: row.last_user_seq,
        }
    }

    /// Returns the `seq` of the newest of both messages; 0 if there is none.
    pub fn seq(self) -> i64 {
        let newest = self.last_assistant_seq.max(self.last_user_seq);
        newest.unwrap_or(0)
    }

    /// Sets the columns of a row; they are saved with its counters.
    pub fn apply_to(self, row: &mut conversation::Model) {
        row.last_speaker_membership_id = self.last_speaker;
        row.last_assistant_seq = self.last_assistant_seq;
        row.last_user_seq = self.last_user_seq;
    }
}

/// Finds the newest visible messages, using the index on role.
pub async fn find(db: &impl ConnectionTrait, id: ConversationId) -> Result<NewestMessages, DbErr> {
    let assistant = find_newest(db, id, MessageRole::Assistant).await?;
    let user = find_newest(db, id, MessageRole::User).await?;
    Ok(NewestMessages {
        last_speaker: assistant.map(|(_, author)| author),
        last_assistant_seq: assistant.map(|(seq, _)| seq),
        last_user_seq: user.map(|(seq, _)| seq),
    })
}

async fn find_newest(
    db: &impl ConnectionTrait,
    id: ConversationId,
    role: MessageRole,
) -> Result<Option<(i64, MembershipId)>, DbErr> {
    timeline::scheduled(id)
        .select_only()
        .columns([Column::Seq, Column::SpaceMembershipId])
        .filter(Column::Role.eq(role))
        .order_by_desc(Column::Seq)
        .limit(1)
        .into_tuple()
        .one(db)
        .await
}

/// Finds and saves the values of a conversation after an import or branch inserted messages.
pub async fn refresh(tx: &impl ConnectionTrait, id: ConversationId) -> Result<(), DbErr> {
    let newest = find(tx, id).await?;
    conversation::Entity::update_many()
        .col_expr(
            conversation::Column::LastSpeakerMembershipId,
            Expr::value(newest.last_speaker),
        )
        .col_expr(
            conversation::Column::LastAssistantSeq,
            Expr::value(newest.last_assistant_seq),
        )
        .col_expr(
            conversation::Column::LastUserSeq,
            Expr::value(newest.last_user_seq),
        )
        .filter(conversation::Column::Id.eq(id))
        .exec(tx)
        .await
        .map(|_| ())
}
