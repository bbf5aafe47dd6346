//! The documents of a provider in the API: for admins, and for all users.

use base::clock::Timestamp;
use base::ids::ProviderId;
use llm::registry::ProviderKind;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A provider as admins see it, without its key.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Provider)]
pub struct ProviderView {
    pub id: ProviderId,
    pub name: String,
    pub kind: ProviderKind,
    pub base_url: Option<String>,
    pub has_api_key: bool,
    pub model: String,
    pub is_default: bool,
    pub disabled: bool,
    /// Whether pictures are sent to the model.
    pub vision: bool,
    #[schema(value_type = Object)]
    pub settings: Value,
    pub created_at: Timestamp,
}

/// A provider as all users see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ProviderSign)]
pub struct ProviderLabel {
    pub id: ProviderId,
    pub name: String,
    pub kind: ProviderKind,
    pub model: String,
    /// Whether members without a provider of their own use it.
    pub is_default: bool,
    /// Whether pictures are sent to the model.
    pub vision: bool,
}
