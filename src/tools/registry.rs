//! Which tools there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::clock::Clock;
use crate::llm::tool::Tool;
use crate::tools::builtin::dice::DiceTool;
use crate::tools::builtin::time::TimeTool;
use crate::tools::builtin::{dice, time, web_fetch};
use crate::tools::tool::ServerTool;

/// A tool of the house as a model is told of it, by the name that it is declared with. Some are there
/// only where the settings say so.
pub fn declaration(name: &str) -> Option<Tool> {
    match name {
        "time" => Some(time::declaration()),
        "dice" => Some(dice::declaration()),
        "web_fetch" => Some(web_fetch::declaration()),
        _ => None,
    }
}

/// The tools of this node, by the names that they are declared with. Cloning gives another handle.
#[derive(Clone, Default)]
pub struct ToolRegistry {
    tools: Arc<BTreeMap<String, Arc<dyn ServerTool>>>,
}

impl ToolRegistry {
    /// The tools of the house.
    pub fn builtin(clock: Clock) -> Self {
        Self::new([
            ("time", Arc::new(TimeTool { clock }) as Arc<dyn ServerTool>),
            ("dice", Arc::new(DiceTool)),
        ])
    }

    /// These tools.
    pub fn new<'a>(tools: impl IntoIterator<Item = (&'a str, Arc<dyn ServerTool>)>) -> Self {
        let tools = tools.into_iter().map(|(name, it)| (name.to_owned(), it));
        Self {
            tools: Arc::new(tools.collect()),
        }
    }

    /// These tools and one more.
    pub fn with(&self, name: &str, tool: Arc<dyn ServerTool>) -> Self {
        let mut tools = BTreeMap::clone(&self.tools);
        tools.insert(name.to_owned(), tool);
        Self {
            tools: Arc::new(tools),
        }
    }

    /// The tool of this name.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn ServerTool>> {
        self.tools.get(name)
    }
}
