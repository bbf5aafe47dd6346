//! Servers of tools elsewhere: what a request declares of them, and what a turn needs of them.
//!
//! **Invariant:** what opens a server is stored only sealed, and only while a response waits or runs in
//! the background.

use crate::ids::UserId;
use crate::llm::secret::Secret;
use crate::providers::encryption::SecretCipher;
use crate::responses::approvals;
use crate::responses::approvals::Approved;
use crate::responses::parts::Parts;
use crate::responses::refusal::Refusal;
use crate::responses::toolbox::Toolbox;
use crate::tools::mcp::policy::ApprovalPolicy;
use crate::tools::mcp::policy::ToolFilter;
use crate::tools::mcp::server::Credentials;
use crate::tools::mcp::server::McpServer;
use crate::tools::mcp::sessions::McpSessions;
use crate::tools::mcp::tool_cache::McpToolCache;
use crate::tools::mcp::tool_info::McpTool;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;

/// What opens the servers of a request, by their labels.
pub type Secrets = BTreeMap<String, Credentials>;

/// A server as it is declared and stored: without what opens it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Declared {
    pub label: String,
    pub url: String,
    /// `None`: all of its tools.
    pub allowed: Option<ToolFilter>,
    pub approval: ApprovalPolicy,
}

/// A tool of a server, as a turn may call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    pub label: String,
    /// As its server calls it.
    pub name: String,
    /// Somebody must agree first.
    pub needs_approval: bool,
}

/// What a turn has to do with servers.
#[derive(Default)]
pub struct Errand {
    /// `None`: no server is declared.
    pub desk: Option<Front>,
    /// What somebody agreed to; run before the model is asked.
    pub approved: Vec<Approved>,
}

/// The servers of a turn.
pub struct Front {
    pub owner: UserId,
    pub lists: McpToolCache,
    pub sessions: Arc<McpSessions>,
    /// Lists that are in the context already, by their labels.
    pub known: HashMap<String, Vec<McpTool>>,
}

/// Plans what the turn of a request has to do with servers.
///
/// # Errors
/// Approvals do not fit; an address may not be called.
pub fn plan(
    parts: &Parts,
    owner: UserId,
    toolbox: &Toolbox,
    prior: &[Value],
    input: &[Value],
) -> Result<Errand, Refusal> {
    let approved = approvals::check(prior, input)?;
    if toolbox.servers.is_empty() {
        return Ok(Errand {
            desk: None,
            approved,
        });
    }
    let (lists, shutdown) = (parts.lists.clone(), parts.shutdown.clone());
    let mut servers = Vec::new();
    for declared in &toolbox.servers {
        let url = lists.egress().parse_tool_server_url(&declared.url);
        let url = url.ok_or_else(|| Refusal::ServerAddress(declared.label.clone()))?;
        servers.push(McpServer {
            label: declared.label.clone(),
            url,
            credentials: toolbox
                .secrets
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
    Ok(Errand {
        desk: Some(Front {
            owner,
            known: known.collect(),
            sessions: Arc::new(McpSessions::new(lists.egress().clone(), shutdown, servers)),
            lists,
        }),
        approved,
    })
}

/// Seals what opens servers for the row of a response; `None`: nothing does.
pub fn seal(sealer: &SecretCipher, id: &str, secrets: &Secrets) -> Option<String> {
    let secrets: BTreeMap<_, _> = secrets.iter().filter(|it| !it.1.is_empty()).collect();
    if secrets.is_empty() {
        return None;
    }
    let text = serde_json::to_string(&secrets).ok()?;
    Some(sealer.encrypt(&Secret::new(&text), &place(id)))
}

/// Opens what was sealed for the row of a response.
///
/// # Errors
/// It was sealed with another secret of the server.
pub fn open(sealer: &SecretCipher, id: &str, sealed: Option<&str>) -> Result<Secrets, Refusal> {
    let Some(sealed) = sealed else {
        return Ok(Secrets::default());
    };
    let opened = sealer.decrypt(sealed, &place(id));
    let opened = opened.map_err(|_| Refusal::Unusable)?;
    serde_json::from_str(opened.expose()).map_err(|_| Refusal::Unusable)
}

fn place(id: &str) -> String {
    format!("responses/{id}/sealed_secrets")
}

#[cfg(test)]
mod tests {
    use super::Secrets;
    use super::open;
    use super::seal;
    use crate::providers::encryption::SecretCipher;
    use crate::tools::mcp::server::Credentials;

    #[test]
    fn what_opens_servers_is_sealed_for_one_row() {
        let sealer = SecretCipher::new("a secret of some length");
        let credentials = Credentials {
            authorization: Some("planted".to_owned()),
            ..Credentials::default()
        };
        let secrets = Secrets::from([("wiki".to_owned(), credentials)]);

        let sealed = seal(&sealer, "resp_1", &secrets).unwrap();

        assert!(!sealed.contains("planted"));
        assert_eq!(open(&sealer, "resp_1", Some(&sealed)).unwrap(), secrets);
        assert!(open(&sealer, "resp_2", Some(&sealed)).is_err());
        assert_eq!(seal(&sealer, "resp_1", &Secrets::default()), None);
    }
}
