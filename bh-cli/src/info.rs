//! `bh info`: the installation, and the components of each stack.

use bh_core::abi::{ABI_VERSION, kind};
use bh_core::{Config, Result, Stack, environment, loader};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Prints the information. Fails only without a readable configuration.
pub fn run(as_json: bool) -> Result<ExitCode> {
    let config = quiet()?;
    let names: Vec<String> = config.stack_names().map(str::to_owned).collect();
    let stacks: Vec<Value> = names.iter().map(|name| stack(&config, name)).collect();
    let default = config.choose_stack(None).map(|stack| stack.name).ok();
    let directories: Vec<String> =
        loader::library_directories(&config).iter().map(|directory| directory.display().to_string()).collect();
    let info = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "abi_version": ABI_VERSION,
        "config": config.source(),
        "default_stack": default,
        "library_directories": directories,
        "stacks": stacks,
        "processor": { "cores": cores(), "features": features() },
    });
    if as_json {
        println!("{info:#}");
    } else {
        print(&info);
    }
    Ok(ExitCode::SUCCESS)
}

/// The configuration, with errors only in the log unless the environment sets its level: the list says once why a device is missing.
fn quiet() -> Result<Config> {
    let mut variables = environment::bh_variables();
    if variables.iter().all(|(name, _)| name != "BH_LOG") {
        variables.push(("BH_LOG".to_owned(), "error".to_owned()));
    }
    Ok(Config::find()?.with_environment(variables))
}

/// A stack's components, or the reason why it does not load.
fn stack(config: &Config, name: &str) -> Value {
    match Stack::load(config, Some(name)) {
        Ok(mut stack) => {
            let components: Vec<Value> = stack
                .components()
                .iter()
                .map(|component| {
                    json!({
                        "name": component.label,
                        "kind": kind_name(component.kind),
                        "version": component.version,
                        "depth": component.depth,
                    })
                })
                .collect();
            let capabilities = stack.capabilities();
            let details = stack.message("info").unwrap_or_default();
            json!({
                "name": name,
                "components": components,
                "parallelism": capabilities.parallelism,
                "details": details,
            })
        }
        Err(error) => json!({ "name": name, "error": error.to_string() }),
    }
}

fn kind_name(code: u32) -> &'static str {
    match code {
        kind::FILTER => "filter",
        kind::FUSER => "fuser",
        kind::DATA_MANAGER => "data manager",
        kind::ENGINE => "engine",
        _ => "component",
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The vector instruction sets that engines choose among.
fn features() -> Vec<&'static str> {
    let mut found = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! detect {
            ($($feature:tt),*) => { $(if std::arch::is_x86_feature_detected!($feature) { found.push($feature); })* };
        }
        detect!("sse2", "sse4.2", "avx", "avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl");
    }
    #[cfg(target_arch = "aarch64")]
    {
        macro_rules! detect {
            ($($feature:tt),*) => { $(if std::arch::is_aarch64_feature_detected!($feature) { found.push($feature); })* };
        }
        detect!("neon", "fp16", "dotprod", "sve", "sve2");
    }
    found
}

fn print(info: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().into_iter().flatten().map(&text).collect::<Vec<_>>().join(" ");
    println!("bh {} (component ABI {})", text(&info["version"]), info["abi_version"]);
    println!("configuration  {}", text(&info["config"]));
    println!("libraries      {}", list(&info["library_directories"]));
    println!("processor      {} cores, {}", info["processor"]["cores"], list(&info["processor"]["features"]));
    println!("stacks");
    for stack in info["stacks"].as_array().into_iter().flatten() {
        let mark = if stack["name"] == info["default_stack"] { "*" } else { " " };
        println!(" {mark} {}", text(&stack["name"]));
        if let Some(error) = stack["error"].as_str() {
            println!("     does not load: {error}");
        }
        for component in stack["components"].as_array().into_iter().flatten() {
            let indent = 2 * component["depth"].as_u64().unwrap_or(0) as usize;
            let (name, kind, version) =
                (text(&component["name"]), text(&component["kind"]), text(&component["version"]));
            println!("     {:indent$}{name} ({kind}, {version})", "");
        }
        for line in text(&stack["details"]).lines() {
            println!("     {line}");
        }
    }
}
