//! Lists the tools that a character may call in a run: those built-in tools and tools of MCP
//! servers that the settings of the space allow.

use std::sync::Arc;

use agent::tools::mcp::remote_server::{Credentials, McpServer};
use agent::tools::mcp::sessions::{McpSessions, RemoteTool};
use agent::tools::mcp::tool_info::McpTool;
use agent::tools::mcp::tool_names::model_facing_name;
use agent::tools::registry::ToolRegistry;
use agent::tools::tool::ServerTool;
use agent::tools::tool_settings::{McpServerSettings, SpaceTools, ToolPermission};
use base::ids::UserId;
use futures::future::join_all;
use llm::tool::Tool;

use crate::runs::services::RunServices;

/// Maximum number of tools in one request, the limit of common APIs.
const MAX_TOOLS: usize = 128;

/// A tool that the model may call.
pub struct ToolOffer {
    pub tool: Arc<dyn ServerTool>,
    pub declaration: Tool,
    /// The name that is shown to users.
    pub display_name: String,
    /// A moderator must approve each call.
    pub needs_approval: bool,
}

/// Returns the tools that the characters of a space may call. `builtin` has the tools of this server.
pub async fn list_for_space(
    context: &RunServices,
    builtin: &ToolRegistry,
    allowed: SpaceTools,
    owner: Option<UserId>,
) -> Vec<ToolOffer> {
    let mut offers = builtin_offers(builtin, &allowed);
    if let Some(owner) = owner.filter(|_| !allowed.servers.is_empty()) {
        offers.extend(server_offers(context, owner, &allowed.servers).await);
    }
    offers.truncate(MAX_TOOLS);
    offers
}

fn builtin_offers(builtin: &ToolRegistry, allowed: &SpaceTools) -> Vec<ToolOffer> {
    let offer = |(name, may): &(&'static str, ToolPermission)| {
        let tool = builtin.find(name)?.clone();
        Some(ToolOffer {
            declaration: tool.declaration(),
            tool,
            display_name: (*name).to_owned(),
            needs_approval: *may == ToolPermission::WithApproval,
        })
    };
    allowed.builtin.iter().filter_map(offer).collect()
}

/// Returns the tools of MCP servers. A server that does not respond offers none; the run continues
/// without it.
async fn server_offers(
    context: &RunServices,
    owner: UserId,
    declared: &[McpServerSettings],
) -> Vec<ToolOffer> {
    let egress = context.mcp_tools.egress();
    let server = |it: &McpServerSettings| {
        let url = egress.parse_tool_server_url(&it.url);
        if url.is_none() {
            tracing::warn!(
                tool.server = it.label,
                "the address of tool server {:?} is not allowed",
                it.label
            );
        }
        Some(McpServer {
            label: it.label.clone(),
            url: url?,
            credentials: Credentials::default(),
        })
    };
    let servers: Vec<McpServer> = declared.iter().filter_map(server).collect();
    let shutdown = context.shutdown.clone();
    let sessions = McpSessions::new(egress.clone(), shutdown, servers.clone());
    let sessions = Arc::new(sessions);
    let lists = servers.iter().map(async |it| {
        let list = context.mcp_tools.tools_of(owner, it).await;
        list.inspect_err(|error| {
            tracing::warn!(tool.server = it.label, %error, "failed to list the tools of server {:?}", it.label);
        })
    });
    let mut offers: Vec<ToolOffer> = Vec::new();
    for (server, list) in servers.iter().zip(join_all(lists).await) {
        let Some(declared) = declared.iter().find(|it| it.label == server.label) else {
            continue;
        };
        let names = declared.allowed_tools.as_ref();
        let list = list.iter().flat_map(|it| it.iter());
        for listed in list.filter(|it| names.is_none_or(|names| names.contains(&it.name))) {
            let offer = server_offer(&sessions, declared, listed);
            let is_known = |it: &ToolOffer| it.declaration.name == offer.declaration.name;
            if !offers.iter().any(is_known) {
                offers.push(offer);
            }
        }
    }
    offers
}

fn server_offer(
    sessions: &Arc<McpSessions>,
    declared: &McpServerSettings,
    listed: &McpTool,
) -> ToolOffer {
    let declaration = Tool {
        name: model_facing_name(&declared.label, &listed.name),
        description: listed.description.clone(),
        parameters: listed.input_schema.clone(),
        strict: None,
    };
    let tool = RemoteTool {
        sessions: sessions.clone(),
        label: declared.label.clone(),
        name: listed.name.clone(),
        declaration: declaration.clone(),
    };
    ToolOffer {
        tool: Arc::new(tool),
        declaration,
        display_name: format!("{}: {}", declared.label, listed.name),
        needs_approval: declared.r#use != Some(ToolPermission::Allowed),
    }
}
