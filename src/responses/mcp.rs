//! Servers of tools elsewhere: what a request declares of them, and what a turn needs of them.
//!
//! **Invariant:** what opens a server is stored only sealed, and only while a response waits or runs in
//! the background.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::UserId;
use crate::llm::secret::Secret;
use crate::providers::encryption::SecretCipher;
use crate::responses::error::ResponseEngineError;
use crate::responses::mcp_approvals;
use crate::responses::mcp_approvals::ApprovedCall;
use crate::responses::services::ResponseServices;
use crate::responses::tool_config::ToolConfig;
use crate::tools::mcp::policy::{ApprovalPolicy, ToolFilter};
use crate::tools::mcp::server::{Credentials, McpServer};
use crate::tools::mcp::sessions::McpSessions;
use crate::tools::mcp::tool_cache::McpToolCache;
use crate::tools::mcp::tool_info::McpTool;

/// What opens the servers of a request, by their labels.
pub type ServerCredentials = BTreeMap<String, Credentials>;

/// A server as it is declared and stored: without what opens it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeclaredServer {
    pub label: String,
    pub url: String,
    /// `None`: all of its tools.
    pub allowed: Option<ToolFilter>,
    pub approval: ApprovalPolicy,
}

/// A tool of a server, as a turn may call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerToolRef {
    pub label: String,
    /// As its server calls it.
    pub name: String,
    /// Somebody must agree first.
    pub needs_approval: bool,
}

/// What a turn has to do with servers.
#[derive(Default)]
pub struct McpPlan {
    /// `None`: no server is declared.
    pub servers: Option<McpServers>,
    /// What somebody agreed to; run before the model is asked.
    pub approved: Vec<ApprovedCall>,
}

/// The servers of a turn.
pub struct McpServers {
    pub owner: UserId,
    pub tool_cache: McpToolCache,
    pub sessions: Arc<McpSessions>,
    /// Lists that are in the context already, by their labels.
    pub known_tools: HashMap<String, Vec<McpTool>>,
}

/// Plans what the turn of a request has to do with servers.
///
/// # Errors
/// Approvals do not fit; an address may not be called.
pub fn plan(
    services: &ResponseServices,
    owner: UserId,
    tools_of_request: &ToolConfig,
    prior: &[Value],
    input: &[Value],
) -> Result<McpPlan, ResponseEngineError> {
    let approved = mcp_approvals::check(prior, input)?;
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
    let known = items.filter(|it| it["type"] == "mcp_list_tools" && it["error"].is_null());
    let known = known.map(|it| {
        let tools = it["tools"].as_array().map_or(&[][..], Vec::as_slice);
        let label = it["server_label"].as_str().unwrap_or_default().to_owned();
        (label, tools.iter().filter_map(McpTool::parse).collect())
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

/// Seals what opens servers for the row of a response; `None`: nothing does.
pub fn encrypt(sealer: &SecretCipher, id: &str, secrets: &ServerCredentials) -> Option<String> {
    let secrets: BTreeMap<_, _> = secrets.iter().filter(|it| !it.1.is_empty()).collect();
    if secrets.is_empty() {
        return None;
    }
    let text = serde_json::to_string(&secrets).ok()?;
    Some(sealer.encrypt(&Secret::new(&text), &encryption_context(id)))
}

/// Opens what was sealed for the row of a response.
///
/// # Errors
/// It was sealed with another secret of the server.
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
    use super::{ServerCredentials, decrypt, encrypt};
    use crate::providers::encryption::SecretCipher;
    use crate::tools::mcp::server::Credentials;

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
