//! Records in the settings of a provider whether its models accept pictures, and forgets it.

use base::ids::ProviderId;
use sea_orm::ActiveValue::Set;
use sea_orm::{ActiveModelTrait, DbErr, IntoActiveModel};

use crate::db::connect::Db;
use crate::providers::vision::VisionSource;
use crate::providers::{provider, vision};

/// Records for each of these models whether it accepts pictures. Saving the settings of the provider discards what
/// calls have shown, a test and another address discard all.
///
/// # Errors
/// Returns the database error if a statement fails.
pub async fn record(
    db: &Db,
    id: ProviderId,
    source: VisionSource,
    models: Vec<(String, bool)>,
) -> Result<(), DbErr> {
    if models.is_empty() {
        return Ok(());
    }
    db.write(move |tx| {
        Box::pin(async move {
            provider::lock_all(tx).await?;
            let Some(present) = provider::find(tx, id).await? else {
                return Ok(());
            };
            let settings = vision::with_detected(&present.settings, source, models);
            if settings != present.settings {
                let mut row = present.into_active_model();
                row.settings = Set(settings);
                row.update(tx).await?;
            }
            Ok(())
        })
    })
    .await
}

/// Forgets what was detected about the models of a provider.
///
/// # Errors
/// Returns the database error if a statement fails.
pub async fn forget(db: &Db, id: ProviderId) -> Result<(), DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            provider::lock_all(tx).await?;
            let found = provider::find(tx, id).await?;
            let Some(present) = found.filter(|it| it.settings.get(vision::DETECTED).is_some())
            else {
                return Ok(());
            };
            let mut row = present.clone().into_active_model();
            row.settings = Set(vision::without_detected(present.settings));
            row.update(tx).await.map(drop)
        })
    })
    .await
}
