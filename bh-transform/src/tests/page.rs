//! Which operations have which kind of rule; the page on derivatives lists them, and `BH_UPDATE=1` writes the list anew.

use crate::rules::{Rule, rule};
use bh_bytecode::methods::METHODS;
use bh_bytecode::{Base, Batch, DType, Extension, Instr, Kind, Opcode, Operand, View};

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

#[test]
fn stacks_of_matrices_have_no_rule() {
    for method in ["solve", "lu", "cholesky", "qr", "eigh", "eig", "svd"] {
        let rule = |shape: &[i64]| {
            let mut batch = Batch::default();
            let (name, name_len) = batch.push_string(method);
            let opcode = Opcode(Opcode::FIRST_EXTENSION);
            batch.extensions.push(Extension { opcode, reserved: 0, name, name_len });
            let view = View::contiguous(shape).unwrap();
            let mut array = || {
                let base = batch.push_base(Base::new(batch.bases.len() as u64 + 1, DType::F64, view.len()));
                Operand::view(batch.push_view(base, &view))
            };
            let operands = [array(), array(), array()];
            let mut instr = Instr::new(opcode, &operands[..if method == "solve" { 3 } else { 2 }]);
            instr.outputs = 1;
            crate::tape::rule_of(&batch.as_ref(), &instr)
        };
        assert!(matches!(rule(&[3, 3]), Rule::Form(_)), "{method}");
        assert!(matches!(rule(&[2, 3, 3]), Rule::Missing), "{method}");
    }
}
