//! Table `llm_providers`: the address, model, settings and encrypted key of each model provider.
//! Lists, creates, changes and deletes providers, and keeps an enabled one the default.

use base::clock::Timestamp;
use base::ids::ProviderId;
use llm::provider_options::ProviderOptions;
use llm::registry::{ProviderKind, ProviderSpec};
use llm::secret::Secret;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{IntoActiveModel, QueryOrder, QuerySelect};
use serde_json::Value;

use crate::db::connect::Db;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::providers::context_window::DEFAULT_CONTEXT_TOKENS;
use crate::providers::detected::detected_settings;
use crate::providers::encryption::{DecryptError, SecretCipher};
use crate::providers::provider_views::{ProviderLabel, ProviderView};
use crate::providers::vision::PictureCost;
use crate::providers::{context_window, extra_headers, vision};

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "llm_providers")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: ProviderId,
    pub name: String,
    pub kind: ProviderKind,
    pub base_url: Option<String>,
    /// Encrypted with the server's secret; see `encryption.rs`. Never leaves the server.
    pub api_key: Option<String>,
    pub model: String,
    pub is_default: bool,
    pub disabled: bool,
    /// Further settings of the provider: `context_tokens`, `max_tokens`, samplers.
    #[sea_orm(column_type = "JsonBinary")]
    pub settings: Json,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Validated input for a new provider.
#[derive(Clone, Debug)]
pub struct NewProvider {
    pub name: String,
    pub kind: ProviderKind,
    pub base_url: Option<String>,
    pub api_key: Option<Secret>,
    pub model: String,
    pub is_default: bool,
    pub disabled: bool,
    pub settings: Json,
}

/// Changes to a provider; `None` keeps a value.
#[derive(Clone, Debug, Default)]
pub struct ProviderChange {
    pub name: Option<String>,
    pub kind: Option<ProviderKind>,
    pub base_url: Option<Option<String>>,
    pub api_key: Option<Option<Secret>>,
    pub model: Option<String>,
    pub is_default: Option<bool>,
    pub disabled: Option<bool>,
    pub settings: Option<Json>,
}

/// A provider after a change.
#[derive(Clone, Debug)]
pub struct ChangedProvider {
    pub provider: Model,
    /// The key or headers were for the old address and have been deleted.
    pub key_cleared: bool,
}

impl Model {
    /// Returns the document for admins.
    pub fn view(&self) -> ProviderView {
        ProviderView {
            id: self.id,
            name: self.name.clone(),
            kind: self.kind,
            base_url: self.base_url.clone(),
            has_api_key: self.api_key.is_some(),
            model: self.model.clone(),
            is_default: self.is_default,
            disabled: self.disabled,
            vision: self.accepts_pictures(),
            settings: extra_headers::masked(self.settings.clone()),
            created_at: self.created_at,
        }
    }

    /// Returns the document for all users.
    pub fn label(&self) -> ProviderLabel {
        ProviderLabel {
            id: self.id,
            name: self.name.clone(),
            kind: self.kind,
            model: self.model.clone(),
            is_default: self.is_default,
            vision: self.accepts_pictures(),
        }
    }

    /// Returns the size of its model's context window: request and answer together, in tokens.
    pub fn context_tokens(&self) -> i64 {
        self.known_context_tokens()
            .unwrap_or(DEFAULT_CONTEXT_TOKENS)
    }

    /// Like `context_tokens`; `None`: nothing is known about the model.
    pub fn known_context_tokens(&self) -> Option<i64> {
        let base_url = self.base_url.as_deref();
        context_window::find(self.kind, base_url, &self.settings, &self.model)
    }

    /// Returns the lowest layer of the preset of its prompts.
    pub fn preset_layer(&self) -> Value {
        let (settings, _) = extra_headers::remove(self.settings.clone());
        context_window::preset_layer(&settings, self.known_context_tokens())
    }

    /// Returns whether pictures are sent to its model.
    pub fn accepts_pictures(&self) -> bool {
        vision::has_vision(self.kind, &self.settings, &self.model)
    }

    /// Returns how a picture is counted for its model; `None`: it accepts no pictures.
    pub fn picture_cost(&self) -> Option<PictureCost> {
        self.accepts_pictures().then(|| PictureCost::of(self.kind))
    }

    /// Returns what a call needs, with the decrypted key.
    ///
    /// # Errors
    /// Returns an error when the key was encrypted with another secret.
    pub fn spec(&self, cipher: &SecretCipher) -> Result<ProviderSpec, DecryptError> {
        let key = self.api_key.as_deref();
        Ok(ProviderSpec {
            kind: self.kind,
            base_url: self.base_url.clone(),
            api_key: key
                .map(|it| cipher.decrypt(it, &encryption_context(self.id)))
                .transpose()?,
            model: self.model.clone(),
            options: ProviderOptions::from_settings(&self.settings),
            extra_headers: extra_headers::decrypt(&self.settings, (cipher, self.id))?,
        })
    }
}

/// Returns the encryption context of a provider's key.
fn encryption_context(id: ProviderId) -> String {
    format!("llm_providers/{id}/api_key")
}

/// Returns a page of all providers of the installation.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list(db: &impl ConnectionTrait, page: PageQuery) -> Result<PageOf<Model>, DbErr> {
    page.load(Entity::find(), Column::Id, db).await
}

/// Returns all providers of the installation.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn list_all(db: &impl ConnectionTrait) -> Result<Vec<Model>, DbErr> {
    Entity::find().order_by_asc(Column::Id).all(db).await
}

/// Returns a provider, disabled or not.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn find(db: &impl ConnectionTrait, id: ProviderId) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id(id).one(db).await
}

/// Returns the default provider, which memberships without an own one use.
pub async fn find_default(db: &impl ConnectionTrait) -> Result<Option<Model>, DbErr> {
    Entity::find()
        .filter(Column::IsDefault.eq(true))
        .filter(Column::Disabled.eq(false))
        .one(db)
        .await
}

/// Creates a provider.
pub async fn create(
    db: &Db,
    cipher: &SecretCipher,
    new: NewProvider,
    now: Timestamp,
) -> Result<Model, DbErr> {
    let sealer = cipher.clone();
    db.write(move |tx| Box::pin(async move { insert(tx, &sealer, new, now).await }))
        .await
}

/// Inserts a provider in the caller's transaction.
pub async fn insert(
    tx: &impl ConnectionTrait,
    cipher: &SecretCipher,
    new: NewProvider,
    now: Timestamp,
) -> Result<Model, DbErr> {
    let row = ActiveModel {
        id: NotSet,
        name: Set(new.name),
        kind: Set(new.kind),
        base_url: Set(new.base_url),
        api_key: Set(None),
        model: Set(new.model),
        is_default: Set(false),
        disabled: Set(new.disabled),
        settings: Set(extra_headers::remove(new.settings.clone()).0),
        created_at: Set(now),
    };
    lock_all(tx).await?;
    let made = row.insert(tx).await?;
    // The key and the headers are encrypted for their row, so the row is inserted first.
    let change = ProviderChange {
        api_key: Some(new.api_key),
        settings: Some(new.settings),
        is_default: Some(new.is_default),
        ..ProviderChange::default()
    };
    Ok(change_row(tx, cipher, made, change).await?.provider)
}

/// Changes a provider. Returns `None` if no provider has this id.
pub async fn update(
    db: &Db,
    cipher: &SecretCipher,
    id: ProviderId,
    change: ProviderChange,
) -> Result<Option<ChangedProvider>, DbErr> {
    let sealer = cipher.clone();
    db.write(move |tx| {
        Box::pin(async move {
            lock_all(tx).await?;
            let Some(present) = Entity::find_by_id(id).one(tx).await? else {
                return Ok(None);
            };
            change_row(tx, &sealer, present, change).await.map(Some)
        })
    })
    .await
}

/// Deletes a provider. Returns `false` if no provider has this id.
pub async fn delete(db: &Db, id: ProviderId) -> Result<bool, DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            lock_all(tx).await?;
            let deleted = Entity::delete_by_id(id).exec(tx).await?;
            ensure_default(tx).await?;
            Ok(deleted.rows_affected == 1)
        })
    })
    .await
}

/// Locks all providers, because a change of the default affects several rows. Callers must read the
/// rows that they change after this call.
pub async fn lock_all(tx: &impl ConnectionTrait) -> Result<(), DbErr> {
    let providers = Entity::find().order_by_asc(Column::Id);
    providers.lock(LockType::Update).all(tx).await.map(|_| ())
}

/// Changes a row in a transaction that has locked all providers.
pub async fn change_row(
    tx: &impl ConnectionTrait,
    cipher: &SecretCipher,
    present: Model,
    change: ProviderChange,
) -> Result<ChangedProvider, DbErr> {
    let id = present.id;
    let changes_endpoint = change
        .base_url
        .as_ref()
        .is_some_and(|it| *it != present.base_url)
        || change.kind.is_some_and(|it| it != present.kind);
    // The key and the headers belong to the address for which they were entered; another address must not
    // receive them.
    let (without_headers, had_headers) = extra_headers::remove(present.settings.clone());
    let key_cleared = changes_endpoint && change.api_key.is_none() && present.api_key.is_some();
    let key = match (change.api_key, key_cleared) {
        (Some(key), _) => Some(key.map(|it| cipher.encrypt(&it, &encryption_context(id)))),
        (None, true) => Some(None),
        (None, false) => None,
    };
    // What was detected about models is valid for their endpoint.
    let encrypted = |new, kept: &Json| extra_headers::encrypt_values(new, kept, (cipher, id));
    let settings = match (change.settings, changes_endpoint) {
        (Some(new), false) => {
            let new = encrypted(new, &present.settings);
            Some(detected_settings::keep_listed(&present.settings, new))
        }
        (Some(new), true) => Some(encrypted(new, &without_headers)),
        (None, true) => Some(detected_settings::without_detected(without_headers)),
        (None, false) => None,
    };
    let mut row = present.into_active_model();
    // The default flag is set below, by separate statements.
    set_if_given(&mut row.name, change.name);
    set_if_given(&mut row.kind, change.kind);
    set_if_given(&mut row.base_url, change.base_url);
    set_if_given(&mut row.api_key, key);
    set_if_given(&mut row.model, change.model);
    set_if_given(&mut row.disabled, change.disabled);
    set_if_given(&mut row.settings, settings);
    if row.is_changed() {
        row.update(tx).await?;
    }
    if let Some(is_default) = change.is_default {
        set_default(tx, id, is_default).await?;
    }
    ensure_default(tx).await?;
    let provider = Entity::find_by_id(id).one(tx).await?;
    Ok(ChangedProvider {
        provider: provider.ok_or(DbErr::RecordNotUpdated)?,
        key_cleared: key_cleared || changes_endpoint && had_headers,
    })
}

fn set_if_given<T: Into<sea_orm::Value>>(column: &mut sea_orm::ActiveValue<T>, value: Option<T>) {
    if let Some(value) = value {
        *column = Set(value);
    }
}

async fn set_default(
    tx: &impl ConnectionTrait,
    id: ProviderId,
    is_default: bool,
) -> Result<(), DbErr> {
    let others = match is_default {
        true => Column::Id.ne(id),
        false => Column::Id.eq(id),
    };
    set_default_flag(tx, others, false).await?;
    match is_default {
        true => set_default_flag(tx, Column::Id.eq(id), true).await,
        false => Ok(()),
    }
}

async fn set_default_flag(
    tx: &impl ConnectionTrait,
    which: sea_orm::sea_query::SimpleExpr,
    is_default: bool,
) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::IsDefault, Expr::value(is_default))
        .filter(Column::IsDefault.ne(is_default))
        .filter(which)
        .exec(tx)
        .await
        .map(|_| ())
}

/// Makes an enabled provider the default if none is, preferably the demo model.
async fn ensure_default(tx: &impl ConnectionTrait) -> Result<(), DbErr> {
    set_default_flag(tx, Column::Disabled.eq(true), false).await?;
    if find_default(tx).await?.is_some() {
        return Ok(());
    }
    let enabled = Entity::find()
        .filter(Column::Disabled.eq(false))
        .order_by_asc(Column::Id)
        .all(tx)
        .await?;
    let next = enabled
        .iter()
        .find(|it| it.kind == ProviderKind::Demo)
        .or(enabled.first());
    match next {
        Some(next) => set_default_flag(tx, Column::Id.eq(next.id), true).await,
        None => Ok(()),
    }
}
