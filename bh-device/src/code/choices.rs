//! The choices for a loop nest and their reasons, in words: the shares of a reduction, and each placement.

use super::common::Common;
use super::stage::{reduction, shares_rows};
use super::table::Table;
use super::turned::turns;
use super::unroll::unrolls;
use super::vector::vectors;
use super::{Placement, Target};
use bh_kernel::Stage;

/// A line for each choice about the kernels of a stage.
pub(crate) fn choices(stage: &Stage, target: &Target) -> Vec<String> {
    let mut lines = Vec::new();
    let reduces = stage.kernel.reduces();
    if let Some((outputs, each, fold)) = reduction(stage, target).filter(|_| reduces) {
        let groups = match fold.splits {
            1 => String::new(),
            splits => format!(", {splits} groups share it, and a second kernel ends it"),
        };
        let lanes = fold.lanes;
        lines.push(format!("reduction: {outputs} results of {each} elements; {lanes} items fold one{groups}"));
    }
    let whole = reduction(stage, target).is_none_or(|(outputs, ..)| outputs == 1);
    let private = match reduces && !whole {
        true => Err("rows belong to different results"),
        false => shares_rows(stage, target),
    };
    let shares = reduction(stage, target).filter(|_| reduces).map(|(.., fold)| Common::find(stage, target, &fold));
    let local = shares.map_or_else(|| turns(stage, target), |shares| shares.map(|common| common.count()));
    let local = match Table::fold(stage, target) {
        Some(_) => Table::placed(stage, target).map(|table| table.count()),
        None => local,
    };
    let unroll = match (&private, &local) {
        (_, Ok(_)) if !reduces => Err("elements come in tiles"),
        _ => unrolls(&stage.kernel, target),
    };
    let vector = match (&private, &local) {
        _ if reduces => Err("elements of a reduction come one by one"),
        (_, Ok(_)) => Err("elements come in tiles"),
        _ => vectors(stage, target).map(|(width, _)| width),
    };
    let mut add = |placement: Placement, chosen: Result<String, &str>| {
        lines.push(match chosen {
            Ok(text) => format!("{}: {text}", placement.name()),
            Err(why) => format!("{}: no, {why}", placement.name()),
        });
    };
    let padding = match &local {
        Err(_) => Err("there are no tiles"),
        Ok(_) if reduces => Err("neighbours read neighbours"),
        Ok(_) if !target.placements.has(Placement::Padding) => Err("not among the placements"),
        Ok(_) => Ok(String::from("rows of tiles are one element longer")),
    };
    add(Placement::Private, private.map(|rows| format!("{rows} rows by one item, with sizes in the text")));
    add(Placement::Local, local.map(|arrays| format!("{arrays} arrays in tiles")));
    add(Placement::Padding, padding);
    add(Placement::Unroll, unroll.map(|each| format!("{each} elements by one item")));
    add(Placement::Vector, vector.map(|width| format!("{width} neighbours at once")));
    lines
}
