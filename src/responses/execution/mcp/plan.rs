//! Determines the MCP servers of a response, their tools known from the history, and the approved
//! calls to run. Also encrypts and decrypts the credentials of the servers.
//!
//! **Invariant:** credentials are stored only encrypted, and only while a background response is
//! queued or running.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use agent::tools::mcp::remote_server::McpServer;
use agent::tools::mcp::sessions::McpSessions;
use agent::tools::mcp::tool_cache::McpToolCache;
use agent::tools::mcp::tool_info::McpTool;
use base::ids::UserId;
use llm::secret::Secret;
use responses_api::request::items::item_view::{ItemContent, ItemView};
use serde_json::Value;

use crate::providers::encryption::SecretCipher;
use crate::responses::error::ResponseEngineError;
use crate::responses::execution::mcp::approvals;
use crate::responses::execution::mcp::approvals::ApprovedCall;
use crate::responses::execution::tool_config::{ServerCredentials, ToolConfig};
use crate::responses::services::ResponseServices;

/// What a response does with MCP servers.
#[derive(Default)]
pub struct McpPlan {
    /// `None` if no server is declared.
    pub servers: Option<McpServers>,
    /// Approved calls; they run before the first model call.
    pub approved: Vec<ApprovedCall>,
}

/// The MCP servers of a response.
pub struct McpServers {
    pub owner: UserId,
    pub tool_cache: McpToolCache,
    pub sessions: Arc<McpSessions>,
    /// Tool lists that the history already contains, keyed by label.
    pub known_tools: HashMap<String, Vec<McpTool>>,
}

/// Plans what a response does with MCP servers.
///
/// # Errors
/// Returns `InvalidApprovals` when approvals are missing or unknown, and `ForbiddenServerAddress`
/// when a server may not be called.
pub fn plan(
    services: &ResponseServices,
    owner: UserId,
    tools_of_request: &ToolConfig,
    prior: &[Value],
    input: &[Value],
) -> Result<McpPlan, ResponseEngineError> {
    let approved = approvals::check(prior, input).map_err(ResponseEngineError::InvalidApprovals)?;
    if tools_of_request.servers.is_empty() {
        return Ok(McpPlan {
            servers: None,
            approved,
        });
    }
    let (tool_cache, shutdown) = (services.mcp_tools.clone(), services.shutdown.clone());
    let mut servers = Vec::new();
    for declared in &tools_of_request.servers {
        let url = tool_cache.egress().parse_tool_server_url(&declared.url);
        let url =
            url.ok_or_else(|| ResponseEngineError::ForbiddenServerAddress(declared.label.clone()))?;
        servers.push(McpServer {
            label: declared.label.clone(),
            url,
            credentials: tools_of_request
                .credentials
                .get(&declared.label)
                .cloned()
                .unwrap_or_default(),
        });
    }
    let items = prior.iter().chain(input);
    let known = items.filter_map(|it| match ItemView::of(it).content {
        ItemContent::RemoteToolList(list) if list.error.is_none() => {
            let tools = list.tools.iter().filter_map(McpTool::parse).collect();
            Some((list.server_label.to_owned(), tools))
        }
        _ => None,
    });
    Ok(McpPlan {
        servers: Some(McpServers {
            owner,
            known_tools: known.collect(),
            sessions: Arc::new(McpSessions::new(
                tool_cache.egress().clone(),
                shutdown,
                servers,
            )),
            tool_cache,
        }),
        approved,
    })
}

/// Encrypts the credentials for the row of a response, or returns `None` if there are none.
pub fn encrypt(sealer: &SecretCipher, id: &str, secrets: &ServerCredentials) -> Option<String> {
    let secrets: BTreeMap<_, _> = secrets.iter().filter(|it| !it.1.is_empty()).collect();
    if secrets.is_empty() {
        return None;
    }
    let text = serde_json::to_string(&secrets).ok()?;
    Some(sealer.encrypt(&Secret::new(&text), &encryption_context(id)))
}

/// Decrypts the credentials of a response's row.
///
/// # Errors
/// Returns `ModelUnavailable` when they were encrypted with another server secret.
pub fn decrypt(
    sealer: &SecretCipher,
    id: &str,
    sealed: Option<&str>,
) -> Result<ServerCredentials, ResponseEngineError> {
    let Some(sealed) = sealed else {
        return Ok(ServerCredentials::default());
    };
    let opened = sealer.decrypt(sealed, &encryption_context(id));
    let opened = opened.map_err(|_| ResponseEngineError::ModelUnavailable)?;
    serde_json::from_str(opened.expose()).map_err(|_| ResponseEngineError::ModelUnavailable)
}

fn encryption_context(id: &str) -> String {
    format!("responses/{id}/sealed_secrets")
}

#[cfg(test)]
mod tests {
    use agent::tools::mcp::remote_server::Credentials;

    use super::{ServerCredentials, decrypt, encrypt};
    use crate::providers::encryption::SecretCipher;

    #[test]
    fn credentials_are_encrypted_for_one_response() {
        let sealer = SecretCipher::new("a secret of some length");
        let credentials = Credentials {
            authorization: Some("planted".to_owned()),
            ..Credentials::default()
        };
        let secrets = ServerCredentials::from([("wiki".to_owned(), credentials)]);

        let sealed = encrypt(&sealer, "resp_1", &secrets).unwrap();

        assert!(!sealed.contains("planted"));
        assert_eq!(decrypt(&sealer, "resp_1", Some(&sealed)).unwrap(), secrets);
        assert!(decrypt(&sealer, "resp_2", Some(&sealed)).is_err());
        assert_eq!(
            encrypt(&sealer, "resp_1", &ServerCredentials::default()),
            None
        );
    }
}
