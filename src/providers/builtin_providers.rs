//! Creates the demo provider if no provider exists, creates or updates the provider set by the
//! environment, and checks that every stored key can be decrypted.

use anyhow::Context;
use base::clock::Timestamp;
use llm::registry::ProviderKind;
use llm::secret::Secret;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder};
use serde_json::json;

use crate::config::EnvironmentProvider;
use crate::db::backend;
use crate::db::connect::Db;
use crate::providers::encryption::SecretCipher;
use crate::providers::provider;
use crate::providers::provider::{NewProvider, ProviderChange};

const DEMO_NAME: &str = "Demo";
const ENVIRONMENT_NAME: &str = "environment";

/// Inserts the demo model if no provider exists.
pub async fn insert_demo(db: &Db, cipher: &SecretCipher, now: Timestamp) -> Result<(), DbErr> {
    let (sealer, backend) = (cipher.clone(), db.backend());
    db.write(move |tx| {
        Box::pin(async move {
            backend::serialized(tx, backend).await?;
            if provider::Entity::find().one(tx).await?.is_some() {
                return Ok(());
            }
            let demo = NewProvider {
                name: DEMO_NAME.to_owned(),
                kind: ProviderKind::Demo,
                base_url: None,
                api_key: None,
                model: "demo".to_owned(),
                is_default: true,
                disabled: false,
                settings: json!({}),
            };
            provider::insert(tx, &sealer, demo, now).await.map(|_| ())
        })
    })
    .await
}

/// Inserts or updates the provider of the environment and makes it the default.
pub async fn insert_from_environment(
    db: &Db,
    cipher: &SecretCipher,
    from: &EnvironmentProvider,
    now: Timestamp,
) -> Result<(), DbErr> {
    let (sealer, backend) = (cipher.clone(), db.backend());
    let base_url = Some(from.base_url.clone());
    let api_key = from.api_key.as_ref().map(|it| Secret::new(&it.0));
    let model = from.model.clone();
    db.write(move |tx| {
        Box::pin(async move {
            backend::serialized(tx, backend).await?;
            provider::lock_all(tx).await?;
            let Some(present) = find_from_environment(tx).await? else {
                let new = NewProvider {
                    name: ENVIRONMENT_NAME.to_owned(),
                    kind: ProviderKind::OpenaiCompatible,
                    base_url,
                    api_key,
                    model,
                    is_default: true,
                    disabled: false,
                    settings: json!({}),
                };
                return provider::insert(tx, &sealer, new, now).await.map(|_| ());
            };
            let change = ProviderChange {
                base_url: Some(base_url),
                api_key: Some(api_key),
                model: Some(model),
                is_default: Some(true),
                disabled: Some(false),
                ..ProviderChange::default()
            };
            provider::change_row(tx, &sealer, present, change)
                .await
                .map(|_| ())
        })
    })
    .await
}

async fn find_from_environment(
    tx: &impl ConnectionTrait,
) -> Result<Option<provider::Model>, DbErr> {
    provider::Entity::find()
        .filter(provider::Column::Name.eq(ENVIRONMENT_NAME))
        .filter(provider::Column::Kind.eq(ProviderKind::OpenaiCompatible))
        .order_by_asc(provider::Column::Id)
        .one(tx)
        .await
}

/// Checks that every stored key can be decrypted.
///
/// # Errors
/// Names the first key that cannot be decrypted, and how to fix it.
pub async fn verify_encrypted_keys(
    db: &impl ConnectionTrait,
    cipher: &SecretCipher,
) -> anyhow::Result<()> {
    for provider in provider::Entity::find().all(db).await? {
        provider.spec(cipher).with_context(|| {
            format!(
                "The key of provider {:?} (id {}) cannot be decrypted. Start with the \
                 TROUPE_SECRET_KEY (or the secret.key in TROUPE_DATA_DIR) that encrypted it",
                provider.name, provider.id
            )
        })?;
    }
    Ok(())
}
