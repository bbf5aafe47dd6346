//! Table `space_memberships`: the users and characters in each space, with their role, settings and
//! copilot. A removed member keeps its row, except a guest who never wrote.

use std::collections::{HashMap, HashSet};

use base::clock::Timestamp;
use base::ids::{
    CharacterId, ConversationId, MembershipId, PersonaId, PresetId, ProviderId, SpaceId, UserId,
};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, SimpleExpr};
use sea_orm::{QueryOrder, QuerySelect};
use serde::Serialize;
use utoipa::ToSchema;

use crate::characters::character;
use crate::db::string_enum::string_enum;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "space_memberships")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: MembershipId,
    pub space_id: SpaceId,
    pub kind: MembershipKind,
    pub user_id: Option<UserId>,
    pub character_id: Option<CharacterId>,
    pub role: MembershipRole,
    /// Order of the roster, and of the reply order `list`.
    pub position: i64,
    pub status: MembershipStatus,
    pub participation: Participation,
    /// Whether a person is away: they get no turns.
    pub is_away: bool,
    /// Stored with the membership, so that history stays readable without the account or card.
    pub cached_display_name: String,
    /// The name that a user chose for this space, also copied to `cached_display_name`; `None`: the
    /// account's name is shown.
    pub own_display_name: Option<String>,
    /// The avatar of a character, stored when the membership is created and when the avatar
    /// changes.
    pub avatar_hash: Option<String>,
    /// A JSON list of other names by which the member can be mentioned.
    #[sea_orm(column_type = "JsonBinary")]
    pub aliases: Json,
    /// The persona of this user's posts; `None`: the user's default persona, if any.
    pub active_persona_id: Option<PersonaId>,
    /// When this user sees messages in translation.
    pub translate: TranslationChoice,
    /// The description of this user where they play no persona.
    pub persona: Option<String>,
    /// 0.0–1.0; `None`: the value of the card, or 0.5 if it has none.
    pub talkativeness: Option<f64>,
    pub copilot_mode: CopilotMode,
    pub copilot_remaining_steps: Option<i64>,
    pub copilot_conversation_id: Option<ConversationId>,
    pub llm_provider_id: Option<ProviderId>,
    pub preset_id: Option<PresetId>,
    #[sea_orm(column_type = "JsonBinary")]
    pub settings: Json,
    pub settings_version: i64,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "crate::spaces::space::Entity",
        from = "Column::SpaceId",
        to = "crate::spaces::space::Column::Id"
    )]
    Space,
    #[sea_orm(
        belongs_to = "crate::characters::character::Entity",
        from = "Column::CharacterId",
        to = "crate::characters::character::Column::Id"
    )]
    Character,
}

impl Related<crate::spaces::space::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Space.def()
    }
}

impl Related<crate::characters::character::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Character.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}

string_enum! {
    /// Whether the member is a user or a character.
    #[schema(as = MembershipKind)]
    MembershipKind { Human, Character }
    /// The role that determines the member's rights.
    #[schema(as = MembershipRole)]
    MembershipRole { Owner, Moderator, Member, Guest }
    /// A removed member has no access; history keeps its name.
    #[schema(as = MembershipStatus)]
    MembershipStatus { Active, Removed }
    /// Muted: never selected automatically, but a user can trigger it. Observer: never speaks.
    Participation { Active, Muted, Observer }
    /// Full: the AI speaks as this user.
    CopilotMode { None, Full }
    /// When a user sees the messages of a space in translation. On demand: those that they choose.
    TranslationChoice { Off, OnDemand, Always }
}

impl Model {
    /// Returns whether the member may speak in `conversation`, selected or triggered.
    pub fn can_speak(&self, conversation: ConversationId) -> bool {
        self.status == MembershipStatus::Active
            && self.participation != Participation::Observer
            && match self.kind {
                MembershipKind::Character => true,
                MembershipKind::Human => {
                    self.copilot_mode == CopilotMode::Full
                        && self.copilot_remaining_steps.is_some_and(|steps| steps > 0)
                        && self.copilot_conversation_id == Some(conversation)
                }
            }
    }

    /// Returns whether the scheduler may select the member.
    pub fn can_be_scheduled(&self) -> bool {
        self.status == MembershipStatus::Active
            && self.kind == MembershipKind::Character
            && self.participation == Participation::Active
    }

    /// Returns whether a person may take a turn in a space whose people take turns. A person whose copilot
    /// is on speaks through the copilot alone.
    pub fn can_take_turn(&self) -> bool {
        self.status == MembershipStatus::Active
            && self.kind == MembershipKind::Human
            && self.participation == Participation::Active
            && self.copilot_mode == CopilotMode::None
            && !self.is_away
    }

    /// Returns whether runs of this member may exist: it is a character, or its copilot is on.
    pub fn can_have_runs(&self) -> bool {
        self.kind == MembershipKind::Character || self.copilot_mode == CopilotMode::Full
    }

    /// Returns the model override of this member, one of its provider's models.
    pub fn model_override(&self) -> Option<&str> {
        let model = self.settings["model"].as_str().map(str::trim);
        model.filter(|it| !it.is_empty())
    }

    /// Returns the other names by which the member can be mentioned.
    pub fn alias_list(&self) -> Vec<String> {
        self.aliases
            .as_array()
            .map(|list| {
                list.iter()
                    .filter_map(|it| it.as_str().map(str::to_owned))
                    .collect()
            })
            .unwrap_or_default()
    }
}

/// Returns all memberships of a space, removed ones included, in roster order.
pub async fn list_for_space(
    db: &impl ConnectionTrait,
    space: SpaceId,
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::SpaceId.eq(space))
        .order_by_asc(Column::Position)
        .order_by_asc(Column::Id)
        .all(db)
        .await
}

/// Selects active memberships; a literal, so that the partial index applies.
pub fn is_active() -> SimpleExpr {
    Expr::cust("space_memberships.status = 'active'")
}

/// Returns the active memberships of a space in roster order. Does not read removed ones.
pub async fn list_active(db: &impl ConnectionTrait, space: SpaceId) -> Result<Vec<Model>, DbErr> {
    list_active_in(db, [space]).await
}

/// Returns the active memberships of these spaces, those of each space in roster order.
pub async fn list_active_in(
    db: &impl ConnectionTrait,
    spaces: impl IntoIterator<Item = SpaceId>,
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::SpaceId.is_in(spaces))
        .filter(is_active())
        .order_by_asc(Column::Position)
        .order_by_asc(Column::Id)
        .all(db)
        .await
}

/// Loads the named memberships of a space that are not in `known`, removed ones included. Runs no
/// query if all are known.
pub async fn load_missing(
    db: &impl ConnectionTrait,
    space: SpaceId,
    known: &[Model],
    named: impl IntoIterator<Item = MembershipId>,
) -> Result<Vec<Model>, DbErr> {
    let known: HashSet<MembershipId> = known.iter().map(|it| it.id).collect();
    let missing: HashSet<MembershipId> =
        named.into_iter().filter(|it| !known.contains(it)).collect();
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    Entity::find()
        .filter(Column::Id.is_in(missing))
        .filter(Column::SpaceId.eq(space))
        .order_by_asc(Column::Position)
        .order_by_asc(Column::Id)
        .all(db)
        .await
}

/// Returns the position after all active memberships of a space.
pub async fn next_position(db: &impl ConnectionTrait, space: SpaceId) -> Result<i64, DbErr> {
    let last: Option<i64> = Entity::find()
        .select_only()
        .column(Column::Position)
        .filter(Column::SpaceId.eq(space))
        .filter(is_active())
        .order_by_desc(Column::Position)
        .limit(1)
        .into_tuple()
        .one(db)
        .await?;
    Ok(last.map_or(0, |it| it + 1))
}

/// Returns a membership, removed or not. The caller checks the access to its space.
pub async fn find(db: &impl ConnectionTrait, id: MembershipId) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id).one(db).await
}

/// Returns the membership of a user in a space, removed or not.
pub async fn find_for_user(
    db: &impl ConnectionTrait,
    space: SpaceId,
    user: UserId,
) -> Result<Option<Model>, DbErr> {
    Entity::find()
        .filter(Column::SpaceId.eq(space))
        .filter(Column::UserId.eq(user))
        .one(db)
        .await
}

/// Returns the memberships of these users in these spaces, removed or not.
pub async fn list_for_users(
    db: &impl ConnectionTrait,
    users: impl IntoIterator<Item = UserId>,
    spaces: impl IntoIterator<Item = SpaceId>,
) -> Result<Vec<Model>, DbErr> {
    Entity::find()
        .filter(Column::UserId.is_in(users))
        .filter(Column::SpaceId.is_in(spaces))
        .all(db)
        .await
}

/// Returns the display names of these memberships, removed ones included.
pub async fn list_display_names(
    db: &impl ConnectionTrait,
    ids: impl IntoIterator<Item = MembershipId>,
) -> Result<HashMap<MembershipId, String>, DbErr> {
    let names: Vec<(MembershipId, String)> = Entity::find()
        .select_only()
        .columns([Column::Id, Column::CachedDisplayName])
        .filter(Column::Id.is_in(ids))
        .into_tuple()
        .all(db)
        .await?;
    Ok(names.into_iter().collect())
}

/// A user or a character as a member of a space.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Membership)]
pub struct MembershipView {
    pub id: MembershipId,
    pub space_id: SpaceId,
    pub kind: MembershipKind,
    pub user_id: Option<UserId>,
    pub character_id: Option<CharacterId>,
    pub role: MembershipRole,
    pub position: i64,
    pub status: MembershipStatus,
    pub participation: Participation,
    /// Whether a person is away and gets no turns.
    pub is_away: bool,
    pub display_name: String,
    pub aliases: Vec<String>,
    pub avatar_url: Option<String>,
    pub persona: Option<String>,
    /// The persona of the caller's posts; null in the memberships of others, and in events.
    pub active_persona_id: Option<PersonaId>,
    /// When the caller sees messages in translation; null in the memberships of others, and in events.
    pub translate: Option<TranslationChoice>,
    pub talkativeness: Option<f64>,
    #[schema(value_type = Object)]
    pub settings: Json,
    pub settings_version: i64,
    pub copilot_mode: CopilotMode,
    pub copilot_remaining_steps: Option<i64>,
    pub copilot_conversation_id: Option<ConversationId>,
    pub llm_provider_id: Option<ProviderId>,
    pub preset_id: Option<PresetId>,
}

impl Model {
    /// Returns the document for this user, who alone sees which persona is chosen and when messages are
    /// translated.
    pub fn view_for(&self, user: UserId) -> MembershipView {
        if self.user_id != Some(user) {
            return self.view();
        }
        MembershipView {
            active_persona_id: self.active_persona_id,
            translate: Some(self.translate),
            ..self.view()
        }
    }

    /// Returns the document that members of the space may read.
    pub fn view(&self) -> MembershipView {
        MembershipView {
            id: self.id,
            space_id: self.space_id,
            kind: self.kind,
            user_id: self.user_id,
            character_id: self.character_id,
            role: self.role,
            position: self.position,
            status: self.status,
            participation: self.participation,
            is_away: self.is_away,
            display_name: self.cached_display_name.clone(),
            aliases: self.alias_list(),
            avatar_url: self
                .character_id
                .and_then(|it| character::avatar_url(it, self.avatar_hash.as_deref())),
            persona: self.persona.clone(),
            active_persona_id: None,
            translate: None,
            talkativeness: self.talkativeness,
            settings: self.settings.clone(),
            settings_version: self.settings_version,
            copilot_mode: self.copilot_mode,
            copilot_remaining_steps: self.copilot_remaining_steps,
            copilot_conversation_id: self.copilot_conversation_id,
            llm_provider_id: self.llm_provider_id,
            preset_id: self.preset_id,
        }
    }
}
