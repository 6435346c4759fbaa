//! Which functions of the C interface record operations: those that lead to `with_place`, as the bridge's sources have it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use syn::visit::{self, Visit};

/// The function that gives the place which the caller noted to the recorder.
const RECORDS: &str = "with_place";
/// Its module, whose other functions use it for messages alone.
const HOME: &str = "error";

/// A function: its module and its name.
type Function = (String, String);

/// The calls in a function, as they are written: names, with the module before them if there is one.
#[derive(Default)]
struct Calls(Vec<(Option<String>, String)>);

impl<'a> Visit<'a> for Calls {
    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        if let syn::Expr::Path(path) = &*call.func {
            let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            match names.as_slice() {
                [name] => self.0.push((None, name.clone())),
                [.., module, name] => self.0.push((Some(module.clone()), name.clone())),
                [] => {}
            }
        }
        visit::visit_expr_call(self, call);
    }
}

/// The names of the exported functions that record, without `bh_`, in the order of the modules.
pub fn recording(root: &Path, modules: &[&str]) -> Result<Vec<String>, String> {
    let mut calls: BTreeMap<Function, Vec<(Option<String>, String)>> = BTreeMap::new();
    let mut exported: Vec<Function> = Vec::new();
    for &module in modules {
        let path = root.join(format!("bh-bridge-c/src/{module}.rs"));
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let file = syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        for item in &file.items {
            let syn::Item::Fn(function) = item else { continue };
            let mut found = Calls::default();
            found.visit_block(&function.block);
            let name = (module.to_owned(), function.sig.ident.to_string());
            if function.sig.abi.is_some() {
                exported.push(name.clone());
            }
            calls.insert(name, found.0);
        }
    }
    // Calls without a module are of the same module, or of one that the file imports from.
    let target = |from: &str, call: &(Option<String>, String)| -> Option<Function> {
        let (module, name) = call;
        let of = |module: &str| calls.contains_key(&(module.to_owned(), name.clone())).then(|| module.to_owned());
        let module = match module {
            Some(module) => of(module),
            None => of(from).or_else(|| modules.iter().find_map(|module| of(module))),
        };
        module.map(|module| (module, name.clone()))
    };
    let mut records = BTreeSet::new();
    loop {
        let before = records.len();
        for (function, made) in calls.iter().filter(|((module, _), _)| module != HOME) {
            let leads = |call: &(Option<String>, String)| {
                call.1 == RECORDS || target(&function.0, call).is_some_and(|called| records.contains(&called))
            };
            if made.iter().any(leads) {
                records.insert(function.clone());
            }
        }
        if records.len() == before {
            break;
        }
    }
    let names = exported.iter().filter(|function| records.contains(function));
    Ok(names.map(|(_, name)| name.trim_start_matches("bh_").to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_record_are_found_and_no_others() {
        let root = crate::root();
        let modules = crate::bridge::modules(&root).unwrap();
        let found = recording(&root, modules).unwrap();
        for name in ["zeros", "copy_new", "matmul_new", "sort", "argsort", "searchsorted", "argmax", "op_new", "load"] {
            assert!(found.iter().any(|other| other == name), "{name} of {found:?}");
        }
        for name in ["empty", "free", "slice", "rank", "error_message", "at", "statistics"] {
            assert!(!found.iter().any(|other| other == name), "{name} of {found:?}");
        }
    }
}
