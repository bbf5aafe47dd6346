//! Deletes unused data every ten minutes: unused guests, deleted characters without a membership,
//! pictures that were not posted or whose message was deleted, and assets (avatars included) that nothing
//! refers to.
//!
//! **Invariant:** nothing that is in use is deleted, even under concurrent changes. A character's
//! row is locked before its memberships are checked, so none can be added in between. An asset is
//! deleted only if it is old at that moment, and code that is about to refer to an asset resets its
//! age first (`characters/asset.rs`). Several nodes may run this at the same time.

use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::ids::{AssetId, CharacterId};
use base::shutdown::Shutdown;
use sea_orm::sea_query::{Expr, ExprTrait, LockType, Query};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder,
    QuerySelect,
};

use crate::attachments::{attachment, attachment_cleanup};
use crate::characters::asset::UNREFERENCED_GRACE_MS;
use crate::characters::character::CharacterStatus;
use crate::characters::{asset, character, character_asset};
use crate::db::connect::Db;
use crate::personas::persona_picture;
use crate::spaces::maintenance::guest_cleanup;
use crate::spaces::membership;

/// Time between two collections of one node.
const INTERVAL: Duration = Duration::from_secs(10 * 60);
/// Rows per transaction; small, so that other writers do not wait long.
const BATCH_SIZE: u64 = 20;

/// What one collection deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GcReport {
    pub characters: u64,
    pub assets: u64,
    /// Pictures that were not posted, or whose message was deleted long ago.
    pub attachments: u64,
    /// Removed guests who never wrote a message.
    pub guests: u64,
    /// Guest accounts without a session and without a membership.
    pub accounts: u64,
}

/// Collects every ten minutes until the node drains.
pub async fn run(db: Db, clock: Clock, shutdown: Shutdown) {
    let first = tokio::time::Instant::now() + INTERVAL;
    let mut tick = tokio::time::interval_at(first, INTERVAL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.draining.cancelled() => return,
            _ = tick.tick() => {}
        }
        match collect_once(&db, clock.now()).await {
            Ok(it) if it == GcReport::default() => {}
            Ok(it) => tracing::info!(
                characters = it.characters,
                assets = it.assets,
                attachments = it.attachments,
                guests = it.guests,
                accounts = it.accounts,
                "deleted unused data"
            ),
            Err(error) => tracing::warn!(%error, "garbage collection failed: {error}"),
        }
    }
}

/// Runs one collection and returns what it deleted.
///
/// # Errors
/// Returns the database error if a query fails; what earlier transactions deleted stays deleted.
pub async fn collect_once(db: &Db, now: Timestamp) -> Result<GcReport, DbErr> {
    let (guests, accounts) = guest_cleanup::delete_unused_guests(db, now).await?;
    let mut report = GcReport {
        guests,
        accounts,
        attachments: attachment_cleanup::delete_due(db, now).await?,
        ..GcReport::default()
    };
    loop {
        let found = find_unused_characters(db.reader()).await?;
        if found.is_empty() {
            break;
        }
        let gone = db
            .write(move |tx| Box::pin(async move { delete_unused_characters(tx, found).await }))
            .await?;
        report.characters += gone;
        if gone == 0 {
            break;
        }
    }
    db.write(|tx| Box::pin(async move { persona_picture::delete_all_unused(tx).await }))
        .await?;
    let before = now.plus_ms(-UNREFERENCED_GRACE_MS);
    loop {
        let found = find_unused_assets(db.reader(), before).await?;
        if found.is_empty() {
            break;
        }
        let gone = db
            .write(move |tx| Box::pin(async move { delete_unused_assets(tx, found, before).await }))
            .await?;
        report.assets += gone;
        if gone == 0 {
            break;
        }
    }
    Ok(report)
}

fn is_unused_character() -> Condition {
    let of_card = (character::Entity, character::Column::Id);
    let memberships = Query::select()
        .column(membership::Column::Id)
        .from(membership::Entity)
        .and_where(Expr::col((membership::Entity, membership::Column::CharacterId)).equals(of_card))
        .take();
    Condition::all()
        .add(character::Column::Status.eq(CharacterStatus::Deleted))
        .add(Expr::exists(memberships).not())
}

async fn find_unused_characters(db: &impl ConnectionTrait) -> Result<Vec<CharacterId>, DbErr> {
    let found = character::Entity::find()
        .select_only()
        .column(character::Column::Id)
        .filter(is_unused_character())
        .limit(BATCH_SIZE);
    found.into_tuple().all(db).await
}

async fn delete_unused_characters(
    tx: &impl ConnectionTrait,
    found: Vec<CharacterId>,
) -> Result<u64, DbErr> {
    // A transaction that adds one of them to a space holds its row lock; a later one finds it
    // deleted.
    let locked: Vec<CharacterId> = character::Entity::find()
        .select_only()
        .column(character::Column::Id)
        .filter(character::Column::Id.is_in(found))
        .order_by_asc(character::Column::Id)
        .lock(LockType::Update)
        .into_tuple()
        .all(tx)
        .await?;
    let gone = character::Entity::delete_many()
        .filter(character::Column::Id.is_in(locked))
        .filter(is_unused_character());
    Ok(gone.exec(tx).await?.rows_affected)
}

fn is_unused_asset(before: Timestamp) -> Condition {
    let of_asset = (asset::Entity, asset::Column::Id);
    let attached = Query::select()
        .column(character_asset::Column::AssetId)
        .from(character_asset::Entity)
        .and_where(
            Expr::col((character_asset::Entity, character_asset::Column::AssetId)).equals(of_asset),
        )
        .take();
    let shown = Query::select()
        .column(character::Column::Id)
        .from(character::Entity)
        .and_where(Expr::col((character::Entity, character::Column::AvatarId)).equals(of_asset))
        .take();
    let picture = |column| Expr::col((persona_picture::Entity, column)).equals(of_asset);
    let of_personas = Query::select()
        .column(persona_picture::Column::PersonaId)
        .from(persona_picture::Entity)
        .cond_where(
            Condition::any()
                .add(picture(persona_picture::Column::SmallId))
                .add(picture(persona_picture::Column::LargeId)),
        )
        .take();
    let shows = |column| Expr::col((attachment::Entity, column)).equals(of_asset);
    let of_messages = Query::select()
        .column(attachment::Column::Id)
        .from(attachment::Entity)
        .cond_where(
            Condition::any()
                .add(shows(attachment::Column::AssetId))
                .add(shows(attachment::Column::ThumbnailAssetId)),
        )
        .take();
    Condition::all()
        .add(asset::Column::CreatedAt.lt(before))
        .add(Expr::exists(attached).not())
        .add(Expr::exists(shown).not())
        .add(Expr::exists(of_personas).not())
        .add(Expr::exists(of_messages).not())
}

async fn find_unused_assets(
    db: &impl ConnectionTrait,
    before: Timestamp,
) -> Result<Vec<AssetId>, DbErr> {
    let found = asset::Entity::find()
        .select_only()
        .column(asset::Column::Id)
        .filter(is_unused_asset(before))
        .limit(BATCH_SIZE);
    found.into_tuple().all(db).await
}

async fn delete_unused_assets(
    tx: &impl ConnectionTrait,
    found: Vec<AssetId>,
    before: Timestamp,
) -> Result<u64, DbErr> {
    let gone = asset::Entity::delete_many()
        .filter(asset::Column::Id.is_in(found))
        .filter(is_unused_asset(before));
    Ok(gone.exec(tx).await?.rows_affected)
}
