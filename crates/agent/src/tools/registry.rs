//! The tools that this node can execute, by their name in the settings, and the declarations of the
//! built-in tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::clock::Clock;
use llm::tool::Tool;

use crate::tools::builtin::dice::DiceTool;
use crate::tools::builtin::time::TimeTool;
use crate::tools::builtin::{dice, memory, time, web_fetch};
use crate::tools::tool::ServerTool;

/// Returns the declaration of a built-in tool by its name, for a request that is not part of a
/// conversation. Some of the tools are available only if the settings enable them, and the memory
/// tool only to the characters of a space.
pub fn declaration(name: &str) -> Option<Tool> {
    match name {
        "time" => Some(time::declaration()),
        "dice" => Some(dice::declaration()),
        "web_fetch" => Some(web_fetch::declaration()),
        "memory" => Some(memory::search_declaration()),
        _ => None,
    }
}

/// The tools of this node by their name in the settings. Cheap to clone; clones share the tools.
#[derive(Clone, Default)]
pub struct ToolRegistry {
    tools: Arc<BTreeMap<String, Arc<dyn ServerTool>>>,
}

impl ToolRegistry {
    /// Creates a registry of the built-in tools.
    pub fn builtin(clock: Clock) -> Self {
        Self::new([
            ("time", Arc::new(TimeTool { clock }) as Arc<dyn ServerTool>),
            ("dice", Arc::new(DiceTool)),
        ])
    }

    /// Creates a registry of the given tools.
    pub fn new<'a>(tools: impl IntoIterator<Item = (&'a str, Arc<dyn ServerTool>)>) -> Self {
        let tools = tools.into_iter().map(|(name, it)| (name.to_owned(), it));
        Self {
            tools: Arc::new(tools.collect()),
        }
    }

    /// Returns a registry with one more tool.
    pub fn with(&self, name: &str, tool: Arc<dyn ServerTool>) -> Self {
        let mut tools = BTreeMap::clone(&self.tools);
        tools.insert(name.to_owned(), tool);
        Self {
            tools: Arc::new(tools),
        }
    }

    /// Returns the tool with this name.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn ServerTool>> {
        self.tools.get(name)
    }
}
