//! Partitions as drawings: dot and SVG. A box is a kernel with its operations, the bytes it moves, and what fusion saved;
//! arrows are dependencies between kernels.

use crate::deps::Dependencies;
use crate::explain::describe;
use crate::facts::{Class, Facts};
use crate::notes::Notes;
use crate::options::Options;
use crate::price::price;
use crate::relation::RelationCache;
use bh_bytecode::BatchRef;
use std::fmt::Write;

struct Node {
    block: usize,
    title: String,
    lines: Vec<String>,
}

struct Drawing {
    nodes: Vec<Node>,
    edges: Vec<(usize, usize)>,
    caption: String,
}

fn plan(batch: &BatchRef<'_>, options: &Options, notes: &Notes) -> Drawing {
    let (mut facts, mut relations) = (Facts::default(), RelationCache::default());
    let mut dependencies = Dependencies::default();
    facts.gather(batch);
    relations.reset(batch.views.len());
    dependencies.gather(batch, &facts, &mut relations);
    let price = price(batch, options);
    let mut node_of = vec![usize::MAX; batch.instrs.len()];
    let mut nodes: Vec<Node> = Vec::new();
    for (number, block) in batch.blocks.iter().enumerate() {
        let work = |op: &&u32| facts.ops[**op as usize].class != Class::System;
        let members: Vec<u32> = batch.block_instrs(block).iter().filter(work).copied().collect();
        if members.is_empty() {
            continue;
        }
        members.iter().for_each(|&op| node_of[op as usize] = nodes.len());
        let (cost, saved) = (price.blocks[number], price.unfused[number] - price.blocks[number]);
        let mut title = format!("kernel {}: {cost} bytes, {saved} saved", nodes.len());
        if block.contracted_count + block.rename_count > 0 {
            let _ = write!(title, ", {} contracted, {} renamed", block.contracted_count, block.rename_count);
        }
        let operations = members.iter().map(|&op| describe(batch, op));
        let lines = operations.chain(notes.of(number).map(str::to_owned)).collect();
        nodes.push(Node { block: number, title, lines });
    }
    let mut edges: Vec<(usize, usize)> = dependencies
        .edges
        .iter()
        .map(|&(a, b)| (node_of[a as usize], node_of[b as usize]))
        .filter(|(a, b)| a != b)
        .collect();
    edges.sort_unstable();
    edges.dedup();
    let caption = format!(
        "{} operations, {} kernels, {} bytes instead of {} ({})",
        facts.work,
        nodes.len(),
        price.total(),
        price.total_unfused(),
        options.cost.name
    );
    Drawing { nodes, edges, caption }
}

/// The partition of a batch in Graphviz's language, with what engines say of its kernels.
pub fn dot(batch: &BatchRef<'_>, options: &Options, notes: &Notes) -> String {
    let drawing = plan(batch, options, notes);
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let mut text = String::from("digraph partition {\n  node [shape=box, fontname=monospace];\n");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  label=\"{}\";", quoted(&drawing.caption));
    for (number, node) in drawing.nodes.iter().enumerate() {
        let lines: String = node.lines.iter().map(|line| quoted(line) + "\\l").collect();
        let _ =
            writeln!(text, "  k{number} [label=\"{}\\l{lines}\", id=\"block{}\"];", quoted(&node.title), node.block);
    }
    for (from, to) in &drawing.edges {
        let _ = writeln!(text, "  k{from} -> k{to};");
    }
    text.push_str("}\n");
    text
}

const LINE: usize = 16;
const CHARACTER: f64 = 7.3;
const GAP: usize = 28;

/// The partition of a batch as SVG: kernels from top to bottom in their order, dependencies as curves on the left.
pub fn svg(batch: &BatchRef<'_>, options: &Options, notes: &Notes) -> String {
    let drawing = plan(batch, options, notes);
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let longest = |node: &Node| node.lines.iter().chain([&node.title]).map(|line| line.chars().count()).max();
    let columns = drawing.nodes.iter().filter_map(longest).chain([drawing.caption.len()]).max().unwrap_or(0);
    let (left, width) = (120, (columns as f64 * CHARACTER) as usize + 24);
    let mut tops = Vec::new();
    let mut y = 2 * GAP;
    for node in &drawing.nodes {
        tops.push((y, LINE * (node.lines.len() + 1) + 12));
        y += LINE * (node.lines.len() + 1) + 12 + GAP;
    }
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{y}\" font-family=\"monospace\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{left}\" y=\"24\" font-weight=\"bold\">{}</text>\n",
        left + width + 20,
        escaped(&drawing.caption)
    );
    for (node, (top, height)) in drawing.nodes.iter().zip(&tops) {
        let _ = writeln!(
            text,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"#eef3fb\" \
             stroke=\"#35588c\"/>\n<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>",
            left + 10,
            top + LINE + 2,
            escaped(&node.title)
        );
        for (at, line) in node.lines.iter().enumerate() {
            let _ = writeln!(
                text,
                "<text x=\"{}\" y=\"{}\" xml:space=\"preserve\">{}</text>",
                left + 10,
                top + LINE * (at + 2) + 2,
                escaped(line)
            );
        }
    }
    for &(from, to) in &drawing.edges {
        let (start, end) = (tops[from].0 + tops[from].1 - 8, tops[to].0 + 10);
        let bend = left.saturating_sub(24 + 12 * from.abs_diff(to)).max(6);
        let _ = writeln!(
            text,
            "<path d=\"M{left} {start} C{bend} {start} {bend} {end} {left} {end}\" fill=\"none\" stroke=\"#b04030\"/>\
             <path d=\"M{} {} l6 4 l-6 4 z\" fill=\"#b04030\"/>",
            left - 6,
            end - 4
        );
    }
    text.push_str("</svg>\n");
    text
}
