//! Who takes part in a context: how many ranks each process has and how fast they are, which all processes learn.

use crate::command::wire::{Reader, Writer, get_table, put_table};
use crate::command::{get_settings, put_settings};
use crate::plan::settings::Settings;
use crate::transport::tree::{collect, leader, spread};
use crate::transport::{Class, Port};
use bh_core::abi::status;
use bh_core::component::Child;
use bh_core::error::{Error, Result};

/// A sibling that is slower than the fastest by more than this gets no share.
const MOST_TIMES_SLOWER: f64 = 10.0;

/// How fast a process's stacks are, as far as they say; one number for each.
pub type Speeds = Vec<Option<f64>>;

/// What all processes of a context know of each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Roster {
    /// How work is shared out.
    pub settings: Settings,
    /// How many ranks each process has.
    pub counts: Vec<usize>,
}

/// What the stacks of a process say of their speed. Of several, those that are much slower than the fastest one would only make it
/// wait for messages: they are left out, unless all are to be kept.
pub fn muster(stacks: &mut Vec<Child>, keep_all: bool) -> Speeds {
    let of = |child: &mut Child| child.message("device speed").ok()?.trim().parse::<f64>().ok();
    let speeds: Speeds = if stacks.len() > 1 { stacks.iter_mut().map(of).collect() } else { vec![None; stacks.len()] };
    let most = speeds.iter().flatten().copied().fold(0.0, f64::max);
    let is_fast = |speed: &Option<f64>| keep_all || speed.is_none_or(|speed| speed * MOST_TIMES_SLOWER >= most);
    let mut fast = speeds.iter().map(is_fast);
    stacks.retain(|_| fast.next().unwrap_or(true));
    speeds.iter().copied().filter(is_fast).collect()
}

/// The speeds of all processes, if all stacks say theirs and they differ: shares, where no others are asked for.
pub fn shares(all: &[Speeds]) -> Option<Vec<f64>> {
    let speeds: Vec<f64> = all.iter().flatten().copied().collect::<Option<_>>()?;
    speeds.iter().any(|&speed| speed != speeds[0]).then_some(speeds)
}

/// Hears of all processes; returns what those of this one's part of the tree said, in their order.
fn hear(port: &mut Port, mine: &Speeds) -> Result<Vec<u8>> {
    let mut writer = Writer::default();
    let words: Vec<u64> = mine.iter().map(|speed| speed.unwrap_or(f64::NAN).to_bits()).collect();
    put_table(&mut writer, &words);
    collect(port, writer.0, |mut all, said| {
        all.extend_from_slice(said);
        Ok(all)
    })
}

/// Rank 0's side: `settings` decides how work is shared out among stacks of these speeds.
pub fn call(port: &mut Port, mine: &Speeds, settings: impl FnOnce(&[Speeds]) -> Result<Settings>) -> Result<Roster> {
    let said = hear(port, mine)?;
    let (mut reader, mut all) = (Reader(&said), Vec::new());
    while !reader.0.is_empty() {
        let words = get_table::<u64>(&mut reader)?.into_iter().map(f64::from_bits);
        all.push(words.map(|speed| (!speed.is_nan()).then_some(speed)).collect::<Speeds>());
    }
    let roster = settings(&all).map(|settings| Roster { settings, counts: all.iter().map(Vec::len).collect() });
    let mut writer = Writer::default();
    if let Ok(Roster { settings, counts }) = &roster {
        put_settings(&mut writer, settings);
        put_table(&mut writer, &counts.iter().map(|&count| count as u64).collect::<Vec<u64>>());
    }
    spread(port, &writer.0)?;
    roster
}

/// Another process's side. None if rank 0 gives the context up.
pub fn answer(port: &mut Port, mine: &Speeds) -> Result<Option<Roster>> {
    let me = port.hosted().start;
    let said = hear(port, mine)?;
    port.send(Class::Control, me, leader(me), said)?;
    let told = port.receive(me, leader(me))?;
    spread(port, &told)?;
    if told.is_empty() {
        return Ok(None);
    }
    let mut reader = Reader(&told);
    let settings = get_settings(&mut reader)?;
    let counts: Vec<usize> = get_table::<u64>(&mut reader)?.into_iter().map(|count| count as usize).collect();
    if counts.len() != port.ranks() || counts.contains(&0) {
        return Err(Error::new(status::EXECUTION, "a roster is not of these ranks: do all run the same bh?"));
    }
    Ok(Some(Roster { settings, counts }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_speeds_that_all_say_and_that_differ() {
        assert_eq!(shares(&[vec![Some(1.0), Some(2.0)], vec![Some(2.0)]]), Some(vec![1.0, 2.0, 2.0]));
        assert_eq!(shares(&[vec![Some(2.0), Some(2.0)], vec![Some(2.0)]]), None);
        assert_eq!(shares(&[vec![Some(1.0), Some(2.0)], vec![None]]), None);
    }
}
