//! The default configuration, and configurations with each key at other values, alone and in pairs.

/// Keys of components with their test values; a key has the same meaning on all stacks with the component.
const KEYS: &[(&str, &str, &[&str])] = &[
    ("filter", "passes", &["[]", "['simplify']", "['common', 'copies', 'dead-code']"]),
    ("filter", "pieces_from", &["1", "300"]),
    ("fuser", "algorithm", &["'singleton'", "'naive'", "'unintrusive'"]),
    ("fuser", "cost_model", &["'unique-views'", "'max-contraction'"]),
    ("fuser", "legality", &["'paper'"]),
    ("fuser", "renames", &["false"]),
    ("fuser", "rename_percent", &["0", "400"]),
    ("fuser", "max_block", &["1", "5"]),
    ("fuser", "planning", &["'direct'", "'linear'", "'full'"]),
    ("fuser", "cache_bytes", &["0"]),
    ("ve-cpu", "threads", &["1", "2", "5"]),
    ("ve-cpu", "isa", &["'portable'", "'sse2'"]),
    ("ve-cpu", "windows", &["'off'"]),
    ("ve-cpu", "time_tiles", &["'off'", "'2'", "'16'"]),
    ("ve-cpu", "superinstructions", &["'off'"]),
    ("ve-cpu", "planning", &["'direct'", "'full'"]),
    ("ve-cpu", "plan_bytes", &["0"]),
    ("ve-cpu", "window_bytes", &["3000"]),
    ("ve-cpu", "stream_bytes", &["64", "'none'"]),
    ("ve-cpu", "jit", &["'off'", "'on'"]),
    ("ve-cpu", "divider", &["'slow'"]),
];

/// A key at a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Setting {
    section: &'static str,
    key: &'static str,
    value: &'static str,
}

fn settings() -> Vec<Setting> {
    let of = |&(section, key, values): &(&'static str, &'static str, &'static [&'static str])| {
        values.iter().map(move |&value| Setting { section, key, value })
    };
    KEYS.iter().flat_map(of).collect()
}

/// A configuration: its name, and sections of components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The keys that are set.
    pub name: String,
    /// The text.
    pub sections: String,
}

fn configuration(settings: &[Setting]) -> Configuration {
    let names: Vec<String> = settings.iter().map(|it| format!("{}.{} = {}", it.section, it.key, it.value)).collect();
    let mut sections = String::new();
    for section in ["filter", "fuser", "ve-cpu"] {
        let own: Vec<&Setting> = settings.iter().filter(|it| it.section == section).collect();
        if !own.is_empty() {
            sections += &format!("[components.{section}]\n");
            own.iter().for_each(|it| sections += &format!("{} = {}\n", it.key, it.value));
        }
    }
    let name = if names.is_empty() { "default".to_owned() } else { names.join(", ") };
    Configuration { name, sections }
}

/// The default configuration first, each key at each value, then all pairs of different keys.
pub fn configurations() -> Vec<Configuration> {
    let all = settings();
    let mut list = vec![configuration(&[])];
    list.extend(all.iter().map(|&one| configuration(&[one])));
    for (at, &one) in all.iter().enumerate() {
        let others = all[at + 1..].iter().filter(|other| (other.section, other.key) != (one.section, one.key));
        list.extend(others.map(|&other| configuration(&[one, other])));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::KEYS;
    use bh_core::keys::SECTIONS;

    /// Keys without test values: they change results, files, memory, processors, or the time limit of a search that is
    /// not in use.
    const APART: &[(&str, &str)] = &[
        ("filter", "reassociate"),
        ("fuser", "optimal_steps"),
        ("fuser", "cache_dir"),
        ("fuser", "graph_dir"),
        ("ve-cpu", "affinity"),
        ("ve-cpu", "domains"),
        ("ve-cpu", "jit_kernels"),
        ("ve-cpu", "jit_cache_dir"),
        ("ve-cpu", "jit_library"),
        ("ve-cpu", "fast_math"),
    ];

    #[test]
    fn every_key_of_the_tried_components_is_tried_or_named_as_apart() {
        let tried: Vec<(&str, &str)> =
            KEYS.iter().map(|(section, key, _)| (*section, *key)).chain(APART.iter().copied()).collect();
        let components = SECTIONS.iter().filter(|section| ["filter", "fuser", "ve-cpu"].contains(&section.name));
        let mut there: Vec<(&str, &str)> =
            components.flat_map(|it| it.rows.iter().map(|row| (row.section, row.name))).collect();
        let mut sorted = tried.clone();
        sorted.sort_unstable();
        there.sort_unstable();
        assert_eq!(sorted, there);
    }
}
