//! Decides which tools of an MCP server may be called, and which of them need approval. No I/O.

use serde::{Deserialize, Serialize};

use crate::tools::mcp::tool_info::McpTool;

/// Conditions that select tools of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolFilter {
    pub tool_names: Option<Vec<String>>,
    /// Matches the read-only hint of the server; a tool without the hint is not read-only.
    pub read_only: Option<bool>,
}

impl ToolFilter {
    /// Returns whether a tool meets every condition of the filter.
    pub fn allows(&self, tool: &McpTool) -> bool {
        self.matches_name(tool).unwrap_or(true) && self.matches_read_only(tool).unwrap_or(true)
    }

    /// Returns whether a tool meets at least one condition of the filter.
    fn matches_any(&self, tool: &McpTool) -> bool {
        self.matches_name(tool).unwrap_or(false) || self.matches_read_only(tool).unwrap_or(false)
    }

    fn matches_name(&self, tool: &McpTool) -> Option<bool> {
        let names = self.tool_names.as_ref()?;
        Some(names.contains(&tool.name))
    }

    fn matches_read_only(&self, tool: &McpTool) -> Option<bool> {
        Some(self.read_only? == tool.is_read_only())
    }
}

/// Which tool calls need approval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApprovalPolicy {
    #[default]
    Always,
    Never,
    /// Tools that match `never` need no approval unless `always` matches them too; all others need
    /// it.
    Some {
        always: ToolFilter,
        never: ToolFilter,
    },
}

impl ApprovalPolicy {
    /// Returns whether calls of this tool need approval.
    pub fn requires_approval(&self, tool: &McpTool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Some { always, never } => {
                // An empty filter exempts nothing.
                let is_exempt = *never != ToolFilter::default() && never.allows(tool);
                !is_exempt || always.matches_any(tool)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ApprovalPolicy, ToolFilter};
    use crate::tools::mcp::tool_info::McpTool;

    fn tool(name: &str, read_only: bool) -> McpTool {
        let hints = json!({ "readOnlyHint": read_only });
        McpTool::parse(&json!({ "name": name, "annotations": hints })).unwrap()
    }

    fn named(names: &[&str]) -> ToolFilter {
        ToolFilter {
            tool_names: Some(names.iter().map(|it| (*it).to_owned()).collect()),
            read_only: None,
        }
    }

    #[test]
    fn only_tools_matched_by_never_run_without_approval() {
        let approval = ApprovalPolicy::Some {
            always: ToolFilter::default(),
            never: named(&["look"]),
        };

        assert!(!approval.requires_approval(&tool("look", false)));
        assert!(approval.requires_approval(&tool("write", true)));
        assert!(ApprovalPolicy::default().requires_approval(&tool("look", true)));
        assert!(!ApprovalPolicy::Never.requires_approval(&tool("write", false)));
    }

    #[test]
    fn always_takes_precedence_and_an_empty_filter_exempts_no_tool() {
        let approval = ApprovalPolicy::Some {
            always: named(&["look"]),
            never: ToolFilter {
                tool_names: None,
                read_only: Some(true),
            },
        };
        let nothing = ApprovalPolicy::Some {
            always: ToolFilter::default(),
            never: ToolFilter::default(),
        };

        assert!(approval.requires_approval(&tool("look", true)));
        assert!(!approval.requires_approval(&tool("find", true)));
        assert!(approval.requires_approval(&tool("find", false)));
        assert!(nothing.requires_approval(&tool("find", true)));
    }

    #[test]
    fn a_filter_allows_tools_that_match_all_its_conditions() {
        let filter = ToolFilter {
            read_only: Some(true),
            ..named(&["look"])
        };

        assert!(filter.allows(&tool("look", true)));
        assert!(!filter.allows(&tool("look", false)));
        assert!(!filter.allows(&tool("find", true)));
    }
}
