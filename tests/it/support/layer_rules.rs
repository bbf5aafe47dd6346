//! The rules of the layers: which modules of `src/` a file may use.

use crate::support::shape_rules::{File, Violation};

/// The only list of the layers: each comment in it starts a layer.
const MODULES: &str = include_str!("../../../src/lib.rs");

/// The parts of `web` that neither its other parts nor each other may use.
const PROTOCOLS: [&str; 3] = ["api", "live", "v1"];

/// Returns the layer of a module, counted from the bottom. `main` is above all others.
fn layer_of(module: &str) -> Option<usize> {
    let mut layer = 0;
    for line in MODULES.lines() {
        if line.starts_with("// ") {
            layer += 1;
        }
        let declared = line
            .strip_prefix("pub mod ")
            .map(|it| it.trim_end_matches(';'));
        if declared == Some(module) {
            return Some(layer);
        }
    }
    (module == "main").then_some(layer + 1)
}

/// Returns the module of a file: `runs` for `src/runs/store/queue.rs`, `clock` for `crates/base/src/clock.rs`.
pub fn module_of(path: &str) -> &str {
    let inside = path.trim_start_matches("src/").trim_end_matches(".rs");
    inside.split('/').next().unwrap_or(inside)
}

/// A module uses only modules of lower layers.
pub fn wrong_layer(file: &File) -> Vec<Violation> {
    let module = module_of(file.path);
    if module == "lib" {
        return Vec::new();
    }
    let Some(layer) = layer_of(module) else {
        return vec![file.violation(1, format!("the module `{module}` is not in src/lib.rs"))];
    };
    let mut found = Vec::new();
    for (offset, named) in named_modules(file) {
        let line = file.source.line_of(offset);
        match layer_of(&named) {
            _ if named == module => {}
            None => found
                .push(file.violation(line, format!("`crate::{named}` is no module of src/lib.rs"))),
            Some(other) if other < layer => {}
            Some(other) if other == layer => {
                found.push(file.violation(line, format!("`{module}` names its neighbor `{named}`: modules of layer {layer} do not know each other")));
            }
            Some(other) => {
                found.push(file.violation(line, format!("`{module}` (layer {layer}) names `{named}` (layer {other}): imports point down only")));
            }
        }
    }
    found
}

/// The shared parts of `web` use no protocol, and no protocol uses another.
pub fn uses_other_protocol(file: &File) -> Vec<Violation> {
    let Some(own) = file.path.strip_prefix("src/web/") else {
        return Vec::new();
    };
    let own = own.split('/').next().unwrap_or(own);
    let code = &file.source.code;
    let root = "crate::web::";
    let mut found = Vec::new();
    for (offset, _) in code.match_indices(root) {
        for name in first_segments(&code[offset + root.len()..]) {
            if name != own && PROTOCOLS.contains(&name.as_str()) {
                let rule = format!(
                    "`web/{own}` names `web/{name}`: a protocol is used by nothing else in `web`"
                );
                found.push(file.violation(file.source.line_of(offset), rule));
            }
        }
    }
    found
}

/// Returns each module that the code names in a path from `crate` or `super`: `runs` for
/// `crate::runs::engine`.
fn named_modules(file: &File) -> Vec<(usize, String)> {
    let code = &file.source.code;
    let depth = file.path.matches('/').count() - usize::from(file.path.ends_with("/mod.rs"));
    let out = "super::".repeat(depth);
    let mut named = Vec::new();
    for root in ["crate::", out.as_str()] {
        for (offset, _) in code.match_indices(root) {
            let before = code[..offset].chars().next_back();
            if before.is_some_and(|sign| {
                sign.is_alphanumeric() || sign == '_' || sign == ':' || sign == '$'
            }) {
                continue;
            }
            for name in first_segments(&code[offset + root.len()..]) {
                // In a nested module `super` leads less far up: only module names count there.
                if root == "crate::" || layer_of(&name).is_some() {
                    named.push((offset, name));
                }
            }
        }
    }
    named
}

/// Returns the first segments of a path: two for `{clock, runs::queue}`.
fn first_segments(path: &str) -> Vec<String> {
    let segment = |text: &str| -> String {
        let is_name = |sign: &char| sign.is_alphanumeric() || *sign == '_';
        text.trim_start().chars().take_while(is_name).collect()
    };
    let Some(group) = path.strip_prefix('{') else {
        return vec![segment(path)];
    };
    let mut segments = vec![segment(group)];
    let mut depth = 1;
    for (at, sign) in group.char_indices() {
        match sign {
            '{' => depth += 1,
            '}' if depth == 1 => break,
            '}' => depth -= 1,
            ',' if depth == 1 => segments.push(segment(&group[at + 1..])),
            _ => {}
        }
    }
    segments.retain(|name| !name.is_empty());
    segments
}
