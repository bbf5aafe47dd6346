//! Loads the messages that replies quote, without most of their texts. A message without a text is quoted
//! by its pictures.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MessageId};
use sea_orm::sea_query::{CaseStatement, Expr, Func, SimpleExpr};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, FromQueryResult, QueryFilter, QuerySelect,
};

use crate::attachments::{attachment, picture_text};
use crate::conversations::annotations::quote;
use crate::conversations::annotations::quote::QuoteView;
use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::message::{Column, Entity, Visibility};
use crate::spaces::membership;

/// How much of a text is loaded, in characters: it may begin with white space.
const LOADED_CHARS: i32 = 800;

/// A message that a reply quotes.
#[derive(Clone, Debug, PartialEq, Eq, FromQueryResult)]
pub struct QuotedMessage {
    pub id: MessageId,
    pub seq: i64,
    pub active_swipe: i64,
    pub visibility: Visibility,
    pub is_ooc: bool,
    pub is_for_people: bool,
    pub created_at: Timestamp,
    pub audience: Option<Audience>,
    pub has_attachments: bool,
    /// The beginning of its text, or the texts of its pictures if it has none.
    pub beginning: String,
    /// The name under which it was posted: that of the persona, else that of the member.
    pub author_name: String,
}

impl QuotedMessage {
    /// Returns the quotation as clients show it.
    pub fn view(&self) -> QuoteView {
        let hidden = self.visibility == Visibility::Hidden;
        QuoteView {
            id: self.id,
            seq: self.seq,
            author_name: self.author_name.clone(),
            excerpt: match hidden {
                true => String::new(),
                false => quote::excerpt(&self.beginning),
            },
            hidden,
        }
    }
}

/// Returns those of these messages that exist, hidden or not, with one query, and one more if any of them
/// has only pictures.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn load(
    db: &impl ConnectionTrait,
    ids: impl IntoIterator<Item = MessageId>,
) -> Result<HashMap<MessageId, QuotedMessage>, DbErr> {
    let ids: Vec<MessageId> = ids.into_iter().collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let beginning = Func::cust("substr")
        .arg(Expr::col((Entity, Column::Content)))
        .arg(1)
        .arg(LOADED_CHARS);
    let member = (membership::Entity, membership::Column::CachedDisplayName);
    let name = Func::coalesce([Expr::col((Entity, Column::PersonaName)), Expr::col(member)]);
    let found = Entity::find()
        .inner_join(membership::Entity)
        .filter(Column::Id.is_in(ids))
        .select_only()
        .columns([
            Column::Id,
            Column::Seq,
            Column::ActiveSwipe,
            Column::Visibility,
            Column::IsOoc,
            Column::HasAttachments,
            Column::IsForPeople,
            Column::CreatedAt,
            Column::Audience,
        ])
        .expr_as(SimpleExpr::from(beginning), "beginning")
        .expr_as(SimpleExpr::from(name), "author_name")
        .into_model::<QuotedMessage>()
        .all(db)
        .await?;
    let mut found: HashMap<MessageId, QuotedMessage> =
        found.into_iter().map(|it| (it.id, it)).collect();
    quote_pictures(db, &mut found).await?;
    Ok(found)
}

/// Uses the texts of their pictures for messages without a text.
async fn quote_pictures(
    db: &impl ConnectionTrait,
    found: &mut HashMap<MessageId, QuotedMessage>,
) -> Result<(), DbErr> {
    let wordless = found.values();
    let wordless = wordless.filter(|it| it.has_attachments && it.beginning.trim().is_empty());
    let pictures = attachment::load(db, wordless.map(|it| it.id)).await?;
    for (id, pictures) in pictures {
        if let Some(message) = found.get_mut(&id) {
            message.beginning = picture_text::of_all(&pictures);
        }
    }
    Ok(())
}

/// Returns the audience of a message of this conversation that a member can answer: it exists, is not
/// hidden, and they see it. `None` if there is no such message.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn find_quotable(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
    id: MessageId,
    member: MembershipId,
) -> Result<Option<Option<Audience>>, DbErr> {
    Entity::find_by_id(id)
        .filter(Column::ConversationId.eq(conversation))
        .filter(Column::Visibility.ne(Visibility::Hidden))
        .filter(Viewer::Member(member).condition((Entity, Column::Audience)))
        .select_only()
        .column(Column::Audience)
        .into_tuple::<Option<Audience>>()
        .one(db)
        .await
}

/// Sets which message each of these messages answers, with one statement.
///
/// # Errors
/// Returns the database error if the statement fails.
pub async fn set_targets(
    tx: &impl ConnectionTrait,
    answers: Vec<(MessageId, MessageId)>,
) -> Result<(), DbErr> {
    if answers.is_empty() {
        return Ok(());
    }
    let mut target = CaseStatement::new();
    for (reply, to) in &answers {
        target = target.case(Column::Id.eq(*reply), to.0);
    }
    Entity::update_many()
        .col_expr(Column::ReplyToMessageId, target.into())
        .filter(Column::Id.is_in(answers.into_iter().map(|(reply, _)| reply)))
        .exec(tx)
        .await
        .map(drop)
}
