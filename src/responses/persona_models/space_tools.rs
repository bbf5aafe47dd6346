//! Offers the tools that a space allows its characters to a chat completion by one of them.

use agent::tools::registry;
use agent::tools::registry::ToolRegistry;
use agent::tools::tool_settings::ToolPermission;
use llm::tool::ToolChoice;

use crate::memories::tool::allowed_tools;
use crate::responses::execution::tool_config::{DeclaredTool, MEMORY_TOOL, ToolConfig, ToolKind};
use crate::spaces::space;

/// Adds the built-in tools that the space allows at any time and this server has. A tool that needs
/// the approval of a moderator is left out, because a chat completion cannot wait for one, and so are
/// all tools if the client decides which tools are called.
pub fn offer(space: &space::Model, registry: &ToolRegistry, tools: &mut ToolConfig) {
    if tools.choice != ToolChoice::Auto || tools.allowed.is_some() {
        return;
    }
    for (name, permission) in allowed_tools::allowed_in(space).builtin {
        let is_here = name == MEMORY_TOOL || registry.find(name).is_some();
        let declared = registry::declaration(name).filter(|_| is_here);
        let is_allowed = permission == ToolPermission::Allowed;
        let Some(tool) = declared.filter(|_| is_allowed) else {
            continue;
        };
        if tools.tools.iter().all(|it| it.tool.name != tool.name) {
            tools.tools.push(DeclaredTool {
                kind: ToolKind::Server,
                namespaced: None,
                tool,
            });
        }
    }
}
