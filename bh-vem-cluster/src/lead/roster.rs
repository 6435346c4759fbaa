//! Who takes part in a context: how many ranks each process has, how fast they are and how much memory they have, which all
//! processes learn.

use crate::command::wire::{Reader, Writer, get_table, put_table};
use crate::command::{get_settings, put_settings};
use crate::plan::rates::MOST_TIMES_SLOWER;
use crate::plan::settings::Settings;
use crate::run::local::memory_of;
use crate::transport::tree::{collect, leader, spread};
use crate::transport::{Class, Port};
use bh_core::abi::status;
use bh_core::component::Child;
use bh_core::error::{Error, Result};

/// Stands for memory that a stack has not got of its own.
const UNKNOWN: u64 = u64::MAX;

/// What a stack has, as far as it says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Means {
    /// How fast it is.
    pub speed: Option<f64>,
    /// Bytes of memory of its own.
    pub memory: Option<u64>,
}

/// The means of a process's stacks.
pub type Stacks = Vec<Means>;

/// What all processes of a context know of each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Roster {
    /// How work is shared out.
    pub settings: Settings,
    /// How many ranks each process has.
    pub counts: Vec<usize>,
    /// The memory of each rank's own.
    pub memory: Vec<Option<u64>>,
}

/// What the stacks of a process say of themselves. Of several, those that are much slower than the fastest one would only make it
/// wait for messages: they are left out, unless all are to be kept.
pub fn muster(stacks: &mut Vec<Child>, keep_all: bool) -> Stacks {
    let several = stacks.len() > 1;
    let of = |child: &mut Child| Means {
        speed: if several {
            child.message("device speed").ok().and_then(|text| text.trim().parse().ok())
        } else {
            None
        },
        memory: memory_of(child),
    };
    let all: Stacks = stacks.iter_mut().map(of).collect();
    let most = all.iter().filter_map(|one| one.speed).fold(0.0, f64::max);
    let is_fast = |one: &Means| keep_all || one.speed.is_none_or(|speed| speed * MOST_TIMES_SLOWER >= most);
    let mut fast = all.iter().map(is_fast);
    stacks.retain(|_| fast.next().unwrap_or(true));
    all.iter().copied().filter(is_fast).collect()
}

/// The speeds of all processes, if all stacks say theirs: what shares follow, where nothing else is asked for.
pub fn speeds(all: &[Stacks]) -> Option<Vec<f64>> {
    all.iter().flatten().map(|one| one.speed).collect()
}

/// Hears of all processes; returns what those of this one's part of the tree said, in their order.
fn hear(port: &mut Port, mine: &Stacks) -> Result<Vec<u8>> {
    let mut writer = Writer::default();
    let words = |one: &Means| [one.speed.unwrap_or(f64::NAN).to_bits(), one.memory.unwrap_or(UNKNOWN)];
    put_table(&mut writer, &mine.iter().flat_map(words).collect::<Vec<u64>>());
    collect(port, writer.0, |mut all, said| {
        all.extend_from_slice(said);
        Ok(all)
    })
}

/// What was said of a stack.
fn means([speed, memory]: &[u64; 2]) -> Means {
    let speed = f64::from_bits(*speed);
    Means { speed: (!speed.is_nan()).then_some(speed), memory: (*memory != UNKNOWN).then_some(*memory) }
}

/// Rank 0's side: `settings` decides how work is shared out among such stacks.
pub fn call(port: &mut Port, mine: &Stacks, settings: impl FnOnce(&[Stacks]) -> Result<Settings>) -> Result<Roster> {
    let said = hear(port, mine)?;
    let (mut reader, mut all) = (Reader(&said), Vec::new());
    while !reader.0.is_empty() {
        all.push(get_table::<u64>(&mut reader)?.as_chunks().0.iter().map(means).collect::<Stacks>());
    }
    let roster = settings(&all).map(|settings| Roster {
        settings,
        counts: all.iter().map(Vec::len).collect(),
        memory: all.iter().flatten().map(|one| one.memory).collect(),
    });
    let mut writer = Writer::default();
    if let Ok(Roster { settings, counts, memory }) = &roster {
        put_settings(&mut writer, settings);
        put_table(&mut writer, &counts.iter().map(|&count| count as u64).collect::<Vec<u64>>());
        put_table(&mut writer, &memory.iter().map(|memory| memory.unwrap_or(UNKNOWN)).collect::<Vec<u64>>());
    }
    spread(port, &writer.0)?;
    roster
}

/// Another process's side. None if rank 0 gives the context up.
pub fn answer(port: &mut Port, mine: &Stacks) -> Result<Option<Roster>> {
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
    let memory =
        get_table::<u64>(&mut reader)?.into_iter().map(|memory| (memory != UNKNOWN).then_some(memory)).collect();
    Ok(Some(Roster { settings, counts, memory }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_count_if_all_say_theirs() {
        let of = |speeds: &[Option<f64>]| -> Stacks {
            speeds.iter().map(|&speed| Means { speed, ..Means::default() }).collect()
        };
        assert_eq!(speeds(&[of(&[Some(1.0), Some(2.0)]), of(&[Some(2.0)])]), Some(vec![1.0, 2.0, 2.0]));
        assert_eq!(speeds(&[of(&[Some(1.0), Some(2.0)]), of(&[None])]), None);
    }
}
