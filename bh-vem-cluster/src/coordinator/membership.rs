//! The membership of a context: the ranks of each process, their speeds and memories. All processes learn it.

use crate::command::wire::{Reader, Writer, get_table, put_table};
use crate::command::{get_settings, put_settings};
use crate::plan::rates::MOST_TIMES_SLOWER;
use crate::plan::settings::Settings;
use crate::run::local::memory_of;
use crate::transport::tree::{broadcast, collect, tree_parent};
use crate::transport::{Class, Port};
use bh_core::abi::status;
use bh_core::component::Child;
use bh_core::error::{Error, Result};

/// Encodes a stack without its own memory.
const UNKNOWN: u64 = u64::MAX;

/// A stack's properties, as far as it reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StackInfo {
    /// Its speed.
    pub speed: Option<f64>,
    /// Bytes of its own memory.
    pub memory: Option<u64>,
}

/// The stacks of one process.
pub type Stacks = Vec<StackInfo>;

/// The facts that all processes of a context know of each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Membership {
    /// The settings of all ranks.
    pub settings: Settings,
    /// Ranks per process.
    pub counts: Vec<usize>,
    /// Each rank's own memory.
    pub memory: Vec<Option<u64>>,
}

/// Reads the properties of a process's stacks. Drops stacks that are much slower than the fastest, because it would
/// wait for their messages, unless `keep_all`.
pub fn usable_stacks(stacks: &mut Vec<Child>, keep_all: bool) -> Stacks {
    let several = stacks.len() > 1;
    let of = |child: &mut Child| StackInfo {
        speed: if several {
            child.message("device speed").ok().and_then(|text| text.trim().parse().ok())
        } else {
            None
        },
        memory: memory_of(child),
    };
    let all: Stacks = stacks.iter_mut().map(of).collect();
    let most = all.iter().filter_map(|one| one.speed).fold(0.0, f64::max);
    let is_fast = |one: &StackInfo| keep_all || one.speed.is_none_or(|speed| speed * MOST_TIMES_SLOWER >= most);
    let mut fast = all.iter().map(is_fast);
    stacks.retain(|_| fast.next().unwrap_or(true));
    all.iter().copied().filter(is_fast).collect()
}

/// The speeds of all stacks, if each reports one. They give the default shares.
pub fn speeds(all: &[Stacks]) -> Option<Vec<f64>> {
    all.iter().flatten().map(|one| one.speed).collect()
}

/// Receives the properties of the processes below in the tree; returns them behind this process's own.
fn collect_infos(port: &mut Port, mine: &Stacks) -> Result<Vec<u8>> {
    let mut writer = Writer::default();
    let words = |one: &StackInfo| [one.speed.unwrap_or(f64::NAN).to_bits(), one.memory.unwrap_or(UNKNOWN)];
    put_table(&mut writer, &mine.iter().flat_map(words).collect::<Vec<u64>>());
    collect(port, writer.0, |mut all, received| {
        all.extend_from_slice(received);
        Ok(all)
    })
}

/// Decodes a stack's properties.
fn stack_info([speed, memory]: &[u64; 2]) -> StackInfo {
    let speed = f64::from_bits(*speed);
    StackInfo { speed: (!speed.is_nan()).then_some(speed), memory: (*memory != UNKNOWN).then_some(*memory) }
}

/// Rank 0's side. `settings` computes the settings for these stacks.
pub fn form(
    port: &mut Port,
    mine: &Stacks,
    settings: impl FnOnce(&[Stacks]) -> Result<Settings>,
) -> Result<Membership> {
    let received = collect_infos(port, mine)?;
    let (mut reader, mut all) = (Reader(&received), Vec::new());
    while !reader.0.is_empty() {
        all.push(get_table::<u64>(&mut reader)?.as_chunks().0.iter().map(stack_info).collect::<Stacks>());
    }
    let membership = settings(&all).map(|settings| Membership {
        settings,
        counts: all.iter().map(Vec::len).collect(),
        memory: all.iter().flatten().map(|one| one.memory).collect(),
    });
    let mut writer = Writer::default();
    if let Ok(Membership { settings, counts, memory }) = &membership {
        put_settings(&mut writer, settings);
        put_table(&mut writer, &counts.iter().map(|&count| count as u64).collect::<Vec<u64>>());
        put_table(&mut writer, &memory.iter().map(|memory| memory.unwrap_or(UNKNOWN)).collect::<Vec<u64>>());
    }
    broadcast(port, &writer.0)?;
    membership
}

/// The other processes' side. `None` if rank 0 gives up the context.
pub fn join(port: &mut Port, mine: &Stacks) -> Result<Option<Membership>> {
    let me = port.hosted().start;
    let received = collect_infos(port, mine)?;
    port.send(Class::Control, me, tree_parent(me), received)?;
    let message = port.receive(me, tree_parent(me))?;
    broadcast(port, &message)?;
    if message.is_empty() {
        return Ok(None);
    }
    let mut reader = Reader(&message);
    let settings = get_settings(&mut reader)?;
    let counts: Vec<usize> = get_table::<u64>(&mut reader)?.into_iter().map(|count| count as usize).collect();
    if counts.len() != port.ranks() || counts.contains(&0) {
        return Err(Error::new(status::EXECUTION, "a roster is not of these ranks: do all run the same bh?"));
    }
    let memory =
        get_table::<u64>(&mut reader)?.into_iter().map(|memory| (memory != UNKNOWN).then_some(memory)).collect();
    Ok(Some(Membership { settings, counts, memory }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_count_if_all_say_theirs() {
        let of = |speeds: &[Option<f64>]| -> Stacks {
            speeds.iter().map(|&speed| StackInfo { speed, ..StackInfo::default() }).collect()
        };
        assert_eq!(speeds(&[of(&[Some(1.0), Some(2.0)]), of(&[Some(2.0)])]), Some(vec![1.0, 2.0, 2.0]));
        assert_eq!(speeds(&[of(&[Some(1.0), Some(2.0)]), of(&[None])]), None);
    }
}
