//! Table `messages`: the messages of all timelines, with queries by id and their JSON form;
//! `timeline.rs` inserts messages and has further queries. A text that a run is still writing has
//! no row.

use std::sync::Arc;

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MessageId, PersonaId, RunId, UserId};
use sea_orm::entity::prelude::*;
use sea_orm::{Condition, JoinType, PaginatorTrait, QuerySelect, QueryTrait};
use serde::Serialize;
use utoipa::ToSchema;

use crate::attachments::attachment::AttachmentView;
use crate::conversations::annotations::quote::QuoteView;
use crate::conversations::annotations::reaction::ReactionView;
use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer::seen_by_user;
use crate::conversations::conversation;
use crate::db::string_enum::string_enum;
use crate::personas::message_persona::{MessagePersona, MessagePersonaView};
use crate::spaces::membership;

/// The metadata key of a text that a person wrote in the name of a character: the name of the person.
pub const POSTED_BY_KEY: &str = "posted_by";
/// The metadata key of dice that the server rolled: their notation, each result and the total.
pub const ROLL_KEY: &str = "roll";

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "messages")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: MessageId,
    pub conversation_id: ConversationId,
    pub seq: i64,
    pub space_membership_id: MembershipId,
    /// The persona under which it was posted; without an id if it was imported.
    pub persona_id: Option<PersonaId>,
    /// The persona's name at that time.
    pub persona_name: Option<String>,
    /// The hash of the persona's picture at that time.
    pub persona_avatar: Option<String>,
    pub role: MessageRole,
    pub content: String,
    pub visibility: Visibility,
    /// Whether memories are made from it, and summaries cover it.
    pub is_remembered: bool,
    /// Out of character: shown to people, marked; neither models nor the schedule read it.
    pub is_ooc: bool,
    /// Who sees it; `None`: everyone. Never changes.
    pub audience: Option<Audience>,
    /// Whether its audience has no character: the schedule reads past it.
    pub is_for_people: bool,
    pub conversation_run_id: Option<RunId>,
    pub active_swipe: i64,
    /// The membership that selected the shown swipe; `None` if the newest one is shown by itself.
    pub swipe_chosen_by: Option<MembershipId>,
    pub client_id: Option<String>,
    pub origin_message_id: Option<MessageId>,
    /// The message of the same conversation that it answers.
    pub reply_to_message_id: Option<MessageId>,
    /// Whether anybody reacted to it.
    pub has_reactions: bool,
    /// Whether it has pictures; its text may be blank then.
    pub has_attachments: bool,
    pub created_at: Timestamp,
    pub edited_at: Option<Timestamp>,
    /// The membership that edited the text last.
    pub edited_by: Option<MembershipId>,
    /// Starts at 1 and increases with each change of the shown text.
    pub version: i64,
    /// The conversation's `rev` of the newest event about this message.
    pub rev: i64,
    pub token_count: i64,
    #[sea_orm(column_type = "JsonBinary")]
    pub metadata: Json,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "crate::conversations::conversation::Entity",
        from = "Column::ConversationId",
        to = "crate::conversations::conversation::Column::Id"
    )]
    Conversation,
    #[sea_orm(
        belongs_to = "crate::spaces::membership::Entity",
        from = "Column::SpaceMembershipId",
        to = "crate::spaces::membership::Column::Id"
    )]
    Author,
}

impl Related<crate::conversations::conversation::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Conversation.def()
    }
}

impl Related<crate::spaces::membership::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Author.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// The role of the author for the model.
    #[schema(as = MessageRole)]
    MessageRole { User, Assistant, System }
    /// Normal: shown and sent to models. Excluded: shown, not sent to models. Hidden: deleted for
    /// everyone.
    Visibility { Normal, Excluded, Hidden }
}

/// Returns a message, hidden or not. The caller checks the access to its conversation.
pub async fn find(db: &impl ConnectionTrait, id: MessageId) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id).one(db).await
}

/// Returns a message of this conversation, hidden or not.
pub async fn find_in_conversation(
    db: &impl ConnectionTrait,
    conversation: ConversationId,
    id: MessageId,
) -> Result<Option<Model>, DbErr> {
    let found = Entity::find_by_id(id).filter(Column::ConversationId.eq(conversation));
    found.one(db).await
}

/// Returns those of these messages that are not hidden, unordered.
pub async fn list_visible(
    db: &impl ConnectionTrait,
    ids: impl IntoIterator<Item = MessageId>,
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::Id.is_in(ids))
        .filter(Column::Visibility.ne(Visibility::Hidden))
        .all(db)
        .await
}

/// Selects the messages that the memory may use; see [`Model::is_usable_by_memory`].
pub fn is_usable_by_memory() -> Condition {
    Condition::all()
        .add(Column::Visibility.eq(Visibility::Normal))
        .add(Column::IsRemembered.eq(true))
        .add(Column::IsOoc.eq(false))
        .add(Column::Audience.is_null())
}

/// Switches the memory off for all messages that a member has written so far. Open pages show this when they
/// read the messages again.
pub async fn switch_memory_off(
    tx: &impl ConnectionTrait,
    author: MembershipId,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::IsRemembered, Expr::value(false))
        .filter(Column::SpaceMembershipId.eq(author))
        .filter(Column::IsRemembered.eq(true))
        .exec(tx)
        .await
        .map(drop)
}

/// Returns the number of messages of conversations that are not hidden.
pub async fn count_in_visible_conversations(db: &impl ConnectionTrait) -> Result<u64, DbErr> {
    let hidden = conversation::hidden_ids();
    let messages = Entity::find().filter(Column::ConversationId.not_in_subquery(hidden));
    messages.count(db).await
}

/// Returns whether a user sees a message with this picture of a persona: one that is not hidden, is in one
/// of their spaces (for an admin in any space), and is no whisper to others.
pub async fn shows_persona_picture(
    db: &impl ConnectionTrait,
    persona: PersonaId,
    picture: &str,
    (user, is_admin): (UserId, bool),
) -> Result<bool, DbErr> {
    let mut shown = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::PersonaId.eq(persona))
        .filter(Column::PersonaAvatar.eq(picture))
        .filter(Column::Visibility.ne(Visibility::Hidden))
        .filter(seen_by_user(user));
    if !is_admin {
        let spaces = membership::Entity::find()
            .select_only()
            .column(membership::Column::SpaceId)
            .filter(membership::Column::UserId.eq(user))
            .filter(membership::is_active());
        shown = shown
            .join(JoinType::InnerJoin, Relation::Conversation.def())
            .filter(conversation::Column::SpaceId.in_subquery(spaces.into_query()));
    }
    let found: Option<MessageId> = shown.limit(1).into_tuple().one(db).await?;
    Ok(found.is_some())
}

/// A finished entry of a timeline.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Message)]
pub struct MessageView {
    pub id: MessageId,
    pub conversation_id: ConversationId,
    pub seq: i64,
    pub space_membership_id: MembershipId,
    pub author_name: String,
    /// The persona under which the author posted it.
    pub persona: Option<MessagePersonaView>,
    pub role: MessageRole,
    pub content: String,
    /// `content` as safe HTML; clients must not show any other HTML. Null if it was not requested.
    #[schema(value_type = Option<String>)]
    pub html: Option<Arc<str>>,
    /// Starts at 1 and increases with each change of the shown text. An edit must name the version
    /// it is based on.
    pub version: i64,
    pub visibility: Visibility,
    /// Whether memories are made from it, and summaries cover it.
    pub remember: bool,
    /// Whether it is out of character: shown to people, in no prompt and no memory, and without
    /// effect on who speaks.
    pub is_ooc: bool,
    /// The memberships that see it; null: everyone.
    pub audience: Option<Audience>,
    /// The message that it answers.
    pub reply_to: Option<QuoteView>,
    /// Who reacted to it, in the order in which the emoji were first used.
    pub reactions: Vec<ReactionView>,
    /// Its pictures, at most four.
    pub attachments: Vec<AttachmentView>,
    pub conversation_run_id: Option<RunId>,
    pub client_id: Option<String>,
    pub swipes: SwipeSummary,
    pub origin_message_id: Option<MessageId>,
    pub edited_at: Option<Timestamp>,
    /// The membership that edited the text last.
    pub edited_by: Option<MembershipId>,
    pub created_at: Timestamp,
    pub rev: i64,
    /// Details of the shown text. `posted_by`: the person who wrote it in the name of a character. `roll`:
    /// the dice that the server rolled, as `notation`, `dice`, `added` and `total`.
    #[schema(value_type = Object)]
    pub metadata: Json,
}

/// The number of texts of a message, the index of the shown one, from 0, and who selected it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Swipes)]
pub struct SwipeSummary {
    pub count: i64,
    pub active: i64,
    /// The membership that selected it; null if no one did since it was written.
    pub chosen_by: Option<MembershipId>,
}

impl Model {
    /// Returns whether the memory may use the message: it is neither deleted nor excluded from prompts
    /// nor out of character nor a whisper, and its memory is on.
    pub fn is_usable_by_memory(&self) -> bool {
        self.visibility == Visibility::Normal
            && self.is_remembered
            && !self.is_ooc
            && self.audience.is_none()
    }

    /// Returns whether everyone who sees what has the audience `readers` sees this message.
    pub fn is_seen_by_all_of(&self, readers: Option<&Audience>) -> bool {
        Audience::is_seen_by_all_of(self.audience.as_ref(), readers)
    }

    /// Returns whether the schedule reads the message: it reads past hidden messages, out-of-character
    /// messages, and whispers to people.
    pub fn is_scheduled(&self) -> bool {
        self.visibility != Visibility::Hidden && !self.is_ooc && !self.is_for_people
    }

    /// Sets the persona under which it was posted.
    pub fn set_persona(&mut self, persona: Option<MessagePersona>) {
        let Some(persona) = persona else {
            return;
        };
        self.persona_id = persona.id;
        self.persona_name = Some(persona.name);
        self.persona_avatar = persona.avatar;
    }

    fn persona_view(&self) -> Option<MessagePersonaView> {
        let (name, avatar) = (self.persona_name.as_deref(), self.persona_avatar.as_deref());
        MessagePersonaView::of(self.persona_id, name, avatar)
    }

    /// Returns the message's document; `n_swipes` is the number of stored swipes, and `html` its text
    /// as `DisplayScripts` renders it, if the document contains that. `MessageAnnotations` adds the
    /// quoted message, the reactions and the pictures.
    pub fn view(&self, author_name: &str, n_swipes: i64, html: Option<Arc<str>>) -> MessageView {
        MessageView {
            id: self.id,
            conversation_id: self.conversation_id,
            seq: self.seq,
            space_membership_id: self.space_membership_id,
            author_name: author_name.to_owned(),
            persona: self.persona_view(),
            role: self.role,
            content: self.content.clone(),
            html,
            version: self.version,
            visibility: self.visibility,
            remember: self.is_remembered,
            is_ooc: self.is_ooc,
            audience: self.audience.clone(),
            reply_to: None,
            reactions: Vec::new(),
            attachments: Vec::new(),
            conversation_run_id: self.conversation_run_id,
            client_id: self.client_id.clone(),
            swipes: SwipeSummary {
                count: n_swipes.max(1),
                active: self.active_swipe,
                chosen_by: self.swipe_chosen_by,
            },
            origin_message_id: self.origin_message_id,
            edited_at: self.edited_at,
            edited_by: self.edited_by,
            created_at: self.created_at,
            rev: self.rev,
            metadata: self.metadata.clone(),
        }
    }
}

/// What remains visible of a hidden message.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = HiddenMessage)]
pub struct HiddenMessageView {
    pub id: MessageId,
    pub seq: i64,
    pub visibility: Visibility,
    pub rev: i64,
}

impl Model {
    /// Returns the document of the message once it is hidden.
    pub fn hidden_view(&self) -> HiddenMessageView {
        HiddenMessageView {
            id: self.id,
            seq: self.seq,
            visibility: Visibility::Hidden,
            rev: self.rev,
        }
    }
}
