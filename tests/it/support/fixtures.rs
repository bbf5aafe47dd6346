//! Inserts the rows that a conversation needs directly into the database: a user, a space,
//! memberships, a provider.

use base::clock::Timestamp;
use base::ids::{CharacterId, ConversationId, MembershipId, SpaceId, UserId};
use llm::registry::ProviderKind;
use llm::secret::Secret;
use sea_orm::ActiveValue::NotSet;
use sea_orm::{ActiveModelTrait, EntityTrait, IntoActiveModel};
use serde_json::json;
use tavern::cards::card;
use tavern::cards::card::Card;
use troupe::accounts::user;
use troupe::characters::character;
use troupe::conversations::conversation;
use troupe::db::connect::Db;
use troupe::providers::encryption::SecretCipher;
use troupe::providers::provider;
use troupe::spaces::{membership, space};

use crate::support::model_call;

/// The ids of the inserted rows.
pub struct Fixtures {
    pub space: SpaceId,
    pub human: MembershipId,
    pub conversation: ConversationId,
}

/// Inserts Eve's space with these characters, in order, and a provider at this address.
pub async fn insert_fixtures(
    db: &Db,
    sealer: &SecretCipher,
    now: Timestamp,
    base_url: &str,
    characters: &[String],
    rules: impl FnOnce(&mut space::Model),
) -> Fixtures {
    insert_provider(db, sealer, now, scripted_provider(base_url)).await;
    let owner = insert(db, user_row(now), |it| it.id = NotSet).await.id;
    let mut row = space_row(owner, now);
    rules(&mut row);
    let space = insert(db, row, |it| it.id = NotSet).await.id;
    let mut row = membership_row(space, 0, "Eve", now);
    row.kind = membership::MembershipKind::Human;
    row.user_id = Some(owner);
    row.role = membership::MembershipRole::Owner;
    let human = insert(db, row, |it| it.id = NotSet).await.id;
    for (position, name) in (1..).zip(characters) {
        let card = insert(db, character_row(owner, name, now), |it| it.id = NotSet).await;
        let mut row = membership_row(space, position, name, now);
        row.character_id = Some(card.id);
        insert(db, row, |it| it.id = NotSet).await;
    }
    Fixtures {
        space,
        human,
        conversation: insert_conversation(db, space, now).await,
    }
}

/// Inserts another root conversation of a space.
pub async fn insert_conversation(db: &Db, space: SpaceId, now: Timestamp) -> ConversationId {
    let row = conversation::Model {
        id: ConversationId(0),
        space_id: space,
        kind: conversation::ConversationKind::Root,
        title: "On stage".to_owned(),
        parent_conversation_id: None,
        forked_from_message_id: None,
        rev: 0,
        last_seq: 0,
        last_speaker_membership_id: None,
        last_assistant_seq: None,
        last_user_seq: None,
        needs_step: false,
        last_run_seq: 0,
        auto_mode_turns: 0,
        settings: json!({}),
        variables: json!({}),
        created_at: now,
        archived_at: None,
        is_hidden: false,
        text_bytes: 0,
        tokens_used: 0,
        unlearned_from_seq: None,
        prompt_starts: serde_json::json!([]),
        summary_from_seq: 1,
        summary_goal_seq: 0,
    };
    insert(db, row, |it| it.id = NotSet).await.id
}

pub async fn change_space(db: &Db, id: SpaceId, change: impl FnOnce(&mut space::Model)) {
    let found = space::Entity::find_by_id(id).one(db.reader()).await;
    let mut row = found.expect("the database answers").expect("a space");
    change(&mut row);
    let row = row.into_active_model().reset_all();
    let saved = db.write(|tx| Box::pin(async move { row.update(tx).await }));
    let _: space::Model = saved
        .await
        .unwrap_or_else(|it: sea_orm::DbErr| panic!("{it}"));
}

pub async fn change_membership(
    db: &Db,
    mut row: membership::Model,
    change: impl FnOnce(&mut membership::Model),
) {
    change(&mut row);
    let row = row.into_active_model().reset_all();
    let saved = db.write(|tx| Box::pin(async move { row.update(tx).await }));
    let _: membership::Model = saved
        .await
        .unwrap_or_else(|it: sea_orm::DbErr| panic!("{it}"));
}

/// Inserts a human membership without a user.
pub async fn insert_human(db: &Db, space: SpaceId, name: &str, now: Timestamp) -> MembershipId {
    let mut row = membership_row(space, 100, name, now);
    row.kind = membership::MembershipKind::Human;
    insert(db, row, |it| it.id = NotSet).await.id
}

/// Sets the first message of a member's character card.
pub async fn set_greeting(db: &Db, member: membership::Model, text: &str) {
    set_card_field(db, member, "first_mes", text).await;
}

/// Sets a text field of a member's character card.
pub async fn set_card_field(db: &Db, member: membership::Model, field: &str, text: &str) {
    let id = member.character_id.expect("a membership of a character");
    let found = character::Entity::find_by_id(id).one(db.reader()).await;
    let mut row = found.expect("the database answers").expect("a card");
    row.card["data"][field] = json!(text);
    row.content_hash = card::content_hash(&row.card);
    let row = row.into_active_model().reset_all();
    let saved = db.write(|tx| Box::pin(async move { row.update(tx).await }));
    let _: character::Model = saved
        .await
        .unwrap_or_else(|it: sea_orm::DbErr| panic!("{it}"));
}

/// Disables or enables the only provider.
pub async fn disable_provider(db: &Db, disabled: bool) {
    let found = provider::Entity::find().one(db.reader()).await;
    let mut row = found.expect("the database answers").expect("a provider");
    row.disabled = disabled;
    let row = row.into_active_model().reset_all();
    let saved = db.write(|tx| Box::pin(async move { row.update(tx).await }));
    let _: provider::Model = saved
        .await
        .unwrap_or_else(|it: sea_orm::DbErr| panic!("{it}"));
}

/// Returns the default provider, whose models the test scripts.
pub fn scripted_provider(base_url: &str) -> provider::NewProvider {
    provider::NewProvider {
        name: "Scripted".to_owned(),
        kind: ProviderKind::OpenaiCompatible,
        base_url: Some(base_url.to_owned()),
        api_key: Some(Secret::new(model_call::KEY)),
        model: "scripted".to_owned(),
        is_default: true,
        disabled: false,
        settings: json!({}),
    }
}

/// Inserts a provider.
pub async fn insert_provider(
    db: &Db,
    sealer: &SecretCipher,
    now: Timestamp,
    new: provider::NewProvider,
) -> provider::Model {
    let made = provider::create(db, sealer, new, now).await;
    made.expect("a provider can be made")
}

async fn insert<M, A>(db: &Db, row: M, forget_id: impl FnOnce(&mut A)) -> M
where
    M: IntoActiveModel<A> + Send + 'static,
    A: ActiveModelTrait + sea_orm::ActiveModelBehavior + Send + 'static,
    A::Entity: EntityTrait<Model = M>,
    M: sea_orm::ModelTrait<Entity = A::Entity> + sea_orm::FromQueryResult + Sync,
    <A::Entity as EntityTrait>::Model: IntoActiveModel<A>,
{
    let mut row = row.into_active_model();
    forget_id(&mut row);
    let inserted = db.write(|tx| Box::pin(async move { row.insert(tx).await }));
    inserted
        .await
        .unwrap_or_else(|it: sea_orm::DbErr| panic!("{it}"))
}

fn user_row(now: Timestamp) -> user::Model {
    user::Model {
        id: UserId(0),
        username: "eve".to_owned(),
        username_key: "eve".to_owned(),
        username_look_as_written: None,
        username_look_in_one_case: None,
        display_name: "Eve".to_owned(),
        password_hash: None,
        role: user::UserRole::Admin,
        status: user::UserStatus::Active,
        locale: "en".to_owned(),
        settings: json!({}),
        created_at: now,
    }
}

fn character_row(owner: UserId, name: &str, now: Timestamp) -> character::Model {
    let fields = json!({ "name": name, "description": format!("{name} is on stage.") });
    let fields = fields.as_object().expect("an object").clone();
    let card = Card::from_flat(fields).expect("a card of these fields");
    character::Model {
        id: CharacterId(0),
        owner_id: Some(owner),
        name: name.to_owned(),
        spec_version: card.spec_version(),
        content_hash: card::content_hash(&card.document),
        talkativeness: card.talkativeness(),
        card: card.document.clone(),
        avatar_id: None,
        avatar_hash: None,
        share_whole_card: false,
        regex_allowed: false,
        status: character::CharacterStatus::Active,
        created_at: now,
    }
}

fn space_row(owner: UserId, now: Timestamp) -> space::Model {
    space::Model {
        id: SpaceId(0),
        name: "Stage".to_owned(),
        description: String::new(),
        owner_id: Some(owner),
        status: space::SpaceStatus::Active,
        reply_order: space::ReplyOrder::Natural,
        replies_per_turn: space::RepliesPerTurn::One,
        card_handling_mode: space::CardHandlingMode::Swap,
        allow_self_responses: false,
        auto_mode_enabled: false,
        auto_mode_delay_ms: 5_000,
        auto_mode_max_turns: 8,
        during_generation_user_input_policy: space::InputPolicy::Queue,
        user_turn_debounce_ms: 0,
        slow_mode_s: 0,
        humans_take_turns: false,
        human_turn_timeout_s: 0,
        group_regenerate_mode: space::GroupRegenerateMode::SingleMessage,
        settings: json!({}),
        settings_version: 0,
        unattributed_tokens: 0,
        roster_rev: 0,
        scripts_rev: 0,
        memory_version: 0,
        memory_reset_version: 0,
        memory_tokens_used: 0,
        embedding_model_id: None,
        translation_provider_id: None,
        director_provider_id: None,
        model_language: None,
        token_limit: 0,
        is_hidden: false,
        created_at: now,
    }
}

fn membership_row(space: SpaceId, position: i64, name: &str, now: Timestamp) -> membership::Model {
    membership::Model {
        id: MembershipId(0),
        space_id: space,
        kind: membership::MembershipKind::Character,
        user_id: None,
        character_id: None,
        role: membership::MembershipRole::Member,
        position,
        status: membership::MembershipStatus::Active,
        participation: membership::Participation::Active,
        is_away: false,
        cached_display_name: name.to_owned(),
        own_display_name: None,
        avatar_hash: None,
        aliases: json!([]),
        active_persona_id: None,
        translate: membership::TranslationChoice::OnDemand,
        persona: None,
        talkativeness: None,
        copilot_mode: membership::CopilotMode::None,
        copilot_remaining_steps: None,
        copilot_conversation_id: None,
        llm_provider_id: None,
        preset_id: None,
        settings: json!({}),
        settings_version: 0,
        created_at: now,
    }
}
