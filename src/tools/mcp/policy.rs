//! Which tools of a server may be called, and which of them only after somebody agreed. Pure.

use serde::{Deserialize, Serialize};

use crate::tools::mcp::tool_info::McpTool;

/// Some of the tools of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolFilter {
    pub tool_names: Option<Vec<String>>,
    /// What its server says of it; one that says nothing is not read-only.
    pub read_only: Option<bool>,
}

impl ToolFilter {
    /// Whether everything that the filter says holds for a tool.
    pub fn allows(&self, tool: &McpTool) -> bool {
        self.matches_name(tool).unwrap_or(true) && self.matches_read_only(tool).unwrap_or(true)
    }

    /// Whether anything that it says does.
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

/// Whether somebody must agree before a tool is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApprovalPolicy {
    #[default]
    Always,
    Never,
    /// For what `never` takes, nobody must, unless `always` names it too; for all else somebody must.
    Some {
        always: ToolFilter,
        never: ToolFilter,
    },
}

impl ApprovalPolicy {
    /// Whether somebody must agree.
    pub fn requires_approval(&self, tool: &McpTool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Some { always, never } => {
                // A filter that says nothing lets nothing pass.
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

    // R63
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
    fn always_wins_and_an_empty_filter_exempts_nothing() {
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
