//! Which operations have which kind of rule; the page on derivatives lists them, and `BH_UPDATE=1` writes the list anew.

use crate::rules::{Rule, rule};
use bh_bytecode::methods::METHODS;
use bh_bytecode::{DType, Kind, Opcode};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/derivatives.md");
const BEGIN: &str = "<!-- rules: begin -->\n";
const END: &str = "<!-- rules: end -->";

fn class(rule: Rule) -> usize {
    match rule {
        Rule::Partials(_) | Rule::Form(_) => 0,
        Rule::Zero => 1,
        Rule::Missing => 2,
    }
}

fn table() -> String {
    let mut classes = [Vec::new(), Vec::new(), Vec::new()];
    for &opcode in Opcode::ALL.iter().filter(|opcode| opcode.kind() != Kind::System) {
        classes[class(rule(opcode, None, DType::F64))].push(opcode.name().to_owned());
    }
    for method in METHODS {
        classes[class(rule(Opcode(Opcode::FIRST_EXTENSION), Some(method.name), DType::F64))]
            .push(method.name.to_owned());
    }
    classes[0].push("functions of scalars".to_owned());
    classes[2].push("users' extension methods".to_owned());
    let kinds = ["a rule", "zero everywhere", "none: an error, unless its inputs are constant"];
    let mut text = String::from("| derivative | operations |\n|---|---|\n");
    for (kind, names) in kinds.iter().zip(classes) {
        text += &format!("| {kind} | {} |\n", names.join(", "));
    }
    text
}

#[test]
fn the_page_lists_the_rules() {
    let page = std::fs::read_to_string(PAGE).expect("the page is there");
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the list");
    let (_, after) = rest.split_once(END).expect("the list ends");
    let current = format!("{before}{BEGIN}{}{END}{after}", table());
    if bh_core::environment::variable("BH_UPDATE").is_some() {
        std::fs::write(PAGE, &current).expect("the page can be written");
    } else {
        assert!(page == current, "docs/derivatives.md is not current: run this test with BH_UPDATE=1");
    }
}
