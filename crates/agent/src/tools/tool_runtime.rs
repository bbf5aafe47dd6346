//! The tools of a node, and the executor that runs them.

use crate::tools::executor::ToolExecutor;
use crate::tools::registry::ToolRegistry;

/// Tools of this node and their executor. Cheap to clone; clones share state.
#[derive(Clone, Default)]
pub struct ToolRuntime {
    pub registry: ToolRegistry,
    pub executor: ToolExecutor,
}
