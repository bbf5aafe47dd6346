//! Loads the module graph of a page: its entry module and all modules that are imported, statically
//! or by `import()`. Rejects import cycles and missing exports, and returns the load order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::read;
use crate::source_module::SourceModule;

/// The modules by their path in the folder of the client.
pub struct Graph {
    modules: BTreeMap<String, SourceModule>,
    /// The modules in an order in which each follows those it imports.
    pub order: Vec<String>,
    pub entry: String,
}

impl Graph {
    /// Reads the entry module of a page and all modules that it loads.
    pub fn load(folder: &Path, entry: &str) -> Result<Graph> {
        let mut graph = Graph {
            modules: BTreeMap::new(),
            order: Vec::new(),
            entry: entry.to_owned(),
        };
        let mut pending = vec![entry.to_owned()];
        while let Some(path) = pending.pop() {
            if graph.modules.contains_key(&path) {
                continue;
            }
            let text = read(folder, &path)?;
            let module = SourceModule::parse(&text).with_context(|| path.clone())?;
            let imported = module.imports.iter().map(|it| &it.from);
            for name in imported.chain(&module.dynamic_imports) {
                pending.push(resolve(&path, name)?);
            }
            graph.modules.insert(path, module);
        }
        let paths: Vec<String> = graph.modules.keys().cloned().collect();
        for path in &paths {
            graph.check_imports(path)?;
            graph.put_in_order(path, &mut Vec::new())?;
        }
        Ok(graph)
    }

    pub fn module(&self, path: &str) -> Result<&SourceModule> {
        let found = self.modules.get(path);
        found.with_context(|| format!("{path} was not read"))
    }

    /// Returns the modules that a module imports statically.
    pub fn imports(&self, path: &str) -> Result<Vec<String>> {
        let module = self.module(path)?;
        let names = module.imports.iter().map(|it| it.from.as_str());
        names.map(|name| resolve(path, name)).collect()
    }

    /// Returns the modules that a module loads later.
    pub fn dynamic_imports(&self, path: &str) -> Result<Vec<String>> {
        let names = &self.module(path)?.dynamic_imports;
        names.iter().map(|name| resolve(path, name)).collect()
    }

    /// Returns a module and all modules that are loaded together with it.
    pub fn reached(&self, path: &str) -> Result<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        let mut pending = vec![path.to_owned()];
        while let Some(path) = pending.pop() {
            if found.contains(&path) {
                continue;
            }
            pending.extend(self.imports(&path)?);
            found.insert(path);
        }
        Ok(found)
    }

    fn put_in_order(&mut self, path: &str, open: &mut Vec<String>) -> Result<()> {
        if self.order.iter().any(|it| it == path) {
            return Ok(());
        }
        if open.iter().any(|it| it == path) {
            bail!("modules import each other: {} -> {path}", open.join(" -> "));
        }
        open.push(path.to_owned());
        for imported in self.imports(path)? {
            self.put_in_order(&imported, open)?;
        }
        open.pop();
        self.order.push(path.to_owned());
        Ok(())
    }

    fn check_imports(&self, path: &str) -> Result<()> {
        for import in &self.module(path)?.imports {
            let target = resolve(path, &import.from)?;
            let exports = &self.module(&target)?.exports;
            for (name, _) in &import.names {
                let is_exported = exports.iter().any(|(exported, _)| exported == name);
                ensure!(is_exported, "{path}: {target} does not export {name}");
            }
        }
        Ok(())
    }
}

/// Returns the path of a module that another one names relative to itself.
pub fn resolve(importer: &str, name: &str) -> Result<String> {
    ensure!(
        name.starts_with("./") || name.starts_with("../"),
        "{importer}: {name} is not a relative path"
    );
    let mut parts: Vec<&str> = importer.split('/').collect();
    parts.pop();
    for part in name.split('/') {
        match part {
            "." => {}
            ".." => {
                let parent = parts.pop();
                parent.with_context(|| format!("{importer}: {name} is outside of the client"))?;
            }
            _ => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}
