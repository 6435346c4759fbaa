//! Processors by the memory that they are next to.

use crate::affinity::Affinity;
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::path::Path;

/// The processors of each engine of a stack that has several: as the key `domains` lists them, or those next to each part of this
/// machine's memory that this process may use. None if all memory is alike.
pub(crate) fn domains(key: &str) -> Result<Vec<Vec<usize>>> {
    if !["", "auto"].contains(&key) {
        let lists = key.split(';').map(|list| match Affinity::parse(list.trim()) {
            Ok(Affinity::List(processors)) => Ok(processors),
            Ok(_) => Err(Error::of_key("domains", "auto, or lists of processors, as in 0-7;8-15", key)),
            Err(text) => Err(Error::new(status::CONFIG, format!("config key 'domains': {text}"))),
        });
        return lists.collect();
    }
    let found = of_tree(Path::new("/sys/devices/system/node"), &|list| match Affinity::parse(list) {
        Ok(Affinity::List(processors)) => processors,
        // Those that this process may not use are left out one by one.
        _ => each(list).filter(|number| Affinity::parse(&number.to_string()).is_ok()).collect(),
    });
    Ok(if found.len() > 1 { found } else { Vec::new() })
}

/// The numbers of a list such as `0-3,8`.
fn each(list: &str) -> impl Iterator<Item = usize> + '_ {
    list.trim().split(',').flat_map(|item| {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        match (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
            (Ok(first), Ok(last)) => first..last + 1,
            _ => 0..0,
        }
    })
}

fn of_tree(tree: &Path, usable: &dyn Fn(&str) -> Vec<usize>) -> Vec<Vec<usize>> {
    let mut nodes: Vec<(usize, Vec<usize>)> = Vec::new();
    for entry in std::fs::read_dir(tree).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(number) = name.strip_prefix("node").and_then(|number| number.parse().ok()) else { continue };
        let list = std::fs::read_to_string(entry.path().join("cpulist")).unwrap_or_default();
        nodes.push((number, usable(list.trim())));
    }
    nodes.sort_unstable();
    nodes.into_iter().map(|(_, processors)| processors).filter(|processors| !processors.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_listed() {
        assert_eq!(domains("0; 0").unwrap(), [[0], [0]]);
        for wrong in ["none", "0;auto", "x"] {
            assert!(domains(wrong).unwrap_err().text.contains("'domains'"), "{wrong}");
        }
    }

    #[test]
    fn processors_are_found_by_their_memory() {
        let tree = std::env::temp_dir().join(format!("bh-domains-{}", std::process::id()));
        for (node, list) in [("node0", "0-2,6\n"), ("node1", "3-5\n"), ("node2", "\n"), ("power", "1\n")] {
            std::fs::create_dir_all(tree.join(node)).unwrap();
            std::fs::write(tree.join(node).join("cpulist"), list).unwrap();
        }
        let found = of_tree(&tree, &|list| each(list).filter(|number| *number != 4).collect());
        assert_eq!(found, [vec![0, 1, 2, 6], vec![3, 5]]);
        std::fs::remove_dir_all(&tree).unwrap();
    }
}
