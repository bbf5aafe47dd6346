//! Combines the tools of this server and the executor that runs them in one value.

use crate::tools::executor::ToolExecutor;
use crate::tools::registry::ToolRegistry;

/// Tools of this node and their executor. Cheap to clone; clones share state.
#[derive(Clone, Default)]
pub struct ToolRuntime {
    pub registry: ToolRegistry,
    pub executor: ToolExecutor,
}
