//! Which tools of a server may be called, and which of them only after somebody agreed. Pure.

use crate::tools::mcp::listed::Listed;
use serde::Deserialize;
use serde::Serialize;

/// Some of the tools of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filter {
    pub tool_names: Option<Vec<String>>,
    /// What its server says of it; one that says nothing is not read-only.
    pub read_only: Option<bool>,
}

impl Filter {
    /// Whether everything that the filter says holds for a tool.
    pub fn takes(&self, tool: &Listed) -> bool {
        self.names(tool).unwrap_or(true) && self.reads(tool).unwrap_or(true)
    }

    /// Whether anything that it says does.
    fn touches(&self, tool: &Listed) -> bool {
        self.names(tool).unwrap_or(false) || self.reads(tool).unwrap_or(false)
    }

    fn names(&self, tool: &Listed) -> Option<bool> {
        let names = self.tool_names.as_ref()?;
        Some(names.contains(&tool.name))
    }

    fn reads(&self, tool: &Listed) -> Option<bool> {
        Some(self.read_only? == tool.is_read_only())
    }
}

/// Whether somebody must agree before a tool is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Approval {
    #[default]
    Always,
    Never,
    /// For what `never` takes, nobody must, unless `always` names it too; for all else somebody must.
    Some {
        always: Filter,
        never: Filter,
    },
}

impl Approval {
    /// Whether somebody must agree.
    pub fn is_needed(&self, tool: &Listed) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Some { always, never } => {
                // A filter that says nothing lets nothing pass.
                let is_free = *never != Filter::default() && never.takes(tool);
                !is_free || always.touches(tool)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Approval;
    use super::Filter;
    use crate::tools::mcp::listed::Listed;
    use serde_json::json;

    fn tool(name: &str, read_only: bool) -> Listed {
        let hints = json!({ "readOnlyHint": read_only });
        Listed::read(&json!({ "name": name, "annotations": hints })).unwrap()
    }

    fn named(names: &[&str]) -> Filter {
        Filter {
            tool_names: Some(names.iter().map(|it| (*it).to_owned()).collect()),
            read_only: None,
        }
    }

    // R63
    #[test]
    fn only_what_never_takes_runs_unasked() {
        let approval = Approval::Some {
            always: Filter::default(),
            never: named(&["look"]),
        };

        assert!(!approval.is_needed(&tool("look", false)));
        assert!(approval.is_needed(&tool("write", true)));
        assert!(Approval::default().is_needed(&tool("look", true)));
        assert!(!Approval::Never.is_needed(&tool("write", false)));
    }

    #[test]
    fn always_wins_and_a_filter_that_says_nothing_frees_nothing() {
        let approval = Approval::Some {
            always: named(&["look"]),
            never: Filter {
                tool_names: None,
                read_only: Some(true),
            },
        };
        let nothing = Approval::Some {
            always: Filter::default(),
            never: Filter::default(),
        };

        assert!(approval.is_needed(&tool("look", true)));
        assert!(!approval.is_needed(&tool("find", true)));
        assert!(approval.is_needed(&tool("find", false)));
        assert!(nothing.is_needed(&tool("find", true)));
    }

    #[test]
    fn a_filter_takes_what_all_of_it_holds_for() {
        let filter = Filter {
            read_only: Some(true),
            ..named(&["look"])
        };

        assert!(filter.takes(&tool("look", true)));
        assert!(!filter.takes(&tool("look", false)));
        assert!(!filter.takes(&tool("find", true)));
    }
}
