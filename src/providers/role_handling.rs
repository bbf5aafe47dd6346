//! Determines how the roles of a prompt's messages are arranged for the model of a provider.

use llm::compatibility::role_handling::RoleHandling;
use llm::provider_options::ProviderOptions;
use llm::registry;
use llm::registry::ProviderKind;

use crate::providers::provider;

/// Returns the arrangement for a provider whose API accepts several; `None`: its API accepts only one, or the
/// prompt is one text.
pub fn of_provider(row: &provider::Model, is_text: bool) -> Option<RoleHandling> {
    let accepts_several = matches!(
        row.kind,
        ProviderKind::Openai | ProviderKind::OpenaiCompatible
    );
    if is_text || !accepts_several {
        return None;
    }
    let options = ProviderOptions::from_settings(&row.settings);
    if options.refused_role_order.contains(&row.model) {
        return Some(RoleHandling::StrictAlternation);
    }
    let host = row.base_url.as_deref().and_then(registry::host);
    Some(
        options
            .role_handling
            .resolve(&host.unwrap_or_default(), &row.model),
    )
}
