//! Rank 0's commands to the other ranks, and their encoding.

pub mod failure;
pub mod known_batches;
pub mod wire;

use crate::command::known_batches::{KnownBatches, Program};
use crate::command::wire::{Reader, Writer, get_table, malformed, put_table};
use crate::plan::boxes::Span;
use crate::plan::layout::Weights;
use crate::plan::rates::Rates;
use crate::plan::settings::{Grids, Settings};
use bh_bytecode::{Base, BatchRef, View};
use bh_core::error::{Error, Result};

/// A command that all ranks execute.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Run a batch.
    Execute(Box<Program>),
    /// Copy elements to rank 0.
    Read(Base, Span),
    /// Copy elements from rank 0 to their owners.
    Write(Base, Span),
    /// Copy a view's elements to rank 0.
    ReadView(Base, View),
    /// Copy a view's elements from rank 0 to their owners.
    WriteView(Base, View),
    /// Register an array.
    Know(Base),
    /// Replace an array that is overwritten as a whole.
    Renew(Base),
    /// Invalidate copies: rank 0 changed an array in place.
    Changed(Base),
    /// Adopt the program's memory on rank 0 as an array.
    Adopt(Base),
    /// Gather an array into rank 0's memory and keep it there.
    GatherToRank0(Base),
    /// Move an array from a grid to rows.
    ToRows(Base),
    /// Register an extension method under a number.
    Method(String, u16),
    /// Open a context on a stack, given as configuration text. True: use all of its siblings, however slow.
    Open(bool, String),
    /// Send traffic counts to rank 0.
    Traffic,
    /// Pass a message to the stacks below.
    Message(String),
    /// Close the context.
    Close,
}

impl KnownBatches {
    /// Decodes a command; the context's number is already read.
    pub fn get(&mut self, bytes: &[u8]) -> Result<Command> {
        let mut reader = Reader(bytes);
        let kind = reader.number()?;
        let base = |reader: &mut Reader<'_>| get_table::<Base>(reader)?.pop().ok_or_else(malformed);
        let span =
            |reader: &mut Reader<'_>| Ok::<Span, Error>(Span::new(reader.number()? as i64, reader.number()? as i64));
        Ok(match kind {
            0 => Command::Execute(self.get_program(&mut reader)?),
            1 => Command::Read(base(&mut reader)?, span(&mut reader)?),
            2 => Command::Write(base(&mut reader)?, span(&mut reader)?),
            3 => Command::Know(base(&mut reader)?),
            4 => Command::Renew(base(&mut reader)?),
            5 => Command::Changed(base(&mut reader)?),
            6 => Command::Adopt(base(&mut reader)?),
            7 => Command::GatherToRank0(base(&mut reader)?),
            15 => Command::ToRows(base(&mut reader)?),
            8 => Command::Method(reader.text()?, reader.number()? as u16),
            9 => Command::Close,
            10 => Command::Open(reader.number()? != 0, reader.text()?),
            11 => Command::Traffic,
            12 => Command::Message(reader.text()?),
            13 => Command::ReadView(base(&mut reader)?, get_view(&mut reader)?),
            14 => Command::WriteView(base(&mut reader)?, get_view(&mut reader)?),
            _ => return Err(malformed()),
        })
    }

    /// Encodes the command that runs a batch; also returns the number of the batch's shape.
    pub fn put_execute(&mut self, batch: &BatchRef<'_>, order: &[u32]) -> (Vec<u8>, u64) {
        let mut writer = Writer::default();
        writer.number(0);
        let shape = self.put_program(&mut writer, batch, order);
        (writer.0, shape)
    }

    /// Encodes a command.
    pub fn put(&mut self, command: &Command) -> Vec<u8> {
        let mut writer = Writer::default();
        let mut with = |kind: u64, base: &Base, span: Option<&Span>| {
            writer.number(kind);
            put_table(&mut writer, &[*base]);
            if let Some(span) = span {
                writer.number(span.low as u64).number(span.high as u64);
            }
        };
        match command {
            Command::Read(base, span) => with(1, base, Some(span)),
            Command::Write(base, span) => with(2, base, Some(span)),
            Command::Know(base) => with(3, base, None),
            Command::Renew(base) => with(4, base, None),
            Command::Changed(base) => with(5, base, None),
            Command::Adopt(base) => with(6, base, None),
            Command::GatherToRank0(base) => with(7, base, None),
            Command::ToRows(base) => with(15, base, None),
            Command::Execute(program) => return self.put_execute(&program.batch.as_ref(), &program.order).0,
            Command::Method(name, opcode) => {
                writer.number(8).bytes(name.as_bytes()).number(u64::from(*opcode));
            }
            Command::Close => {
                writer.number(9);
            }
            Command::Open(keep_all, description) => {
                writer.number(10).number(u64::from(*keep_all)).bytes(description.as_bytes());
            }
            Command::ReadView(base, view) => put_view(&mut writer, 13, base, view),
            Command::WriteView(base, view) => put_view(&mut writer, 14, base, view),
            Command::Traffic => {
                writer.number(11);
            }
            Command::Message(text) => {
                writer.number(12).bytes(text.as_bytes());
            }
        }
        writer.0
    }
}

fn put_view(writer: &mut Writer, kind: u64, base: &Base, view: &View) {
    put_table(writer.number(kind), &[*base]);
    writer.number(view.start() as u64);
    put_table(writer, view.shape());
    put_table(writer, view.stride());
}

fn get_view(reader: &mut Reader<'_>) -> Result<View> {
    let start = reader.number()? as i64;
    let (shape, stride) = (get_table::<i64>(reader)?, get_table::<i64>(reader)?);
    View::new(start, &shape, &stride).map_err(|_| malformed())
}

/// Encodes settings.
pub fn put_settings(writer: &mut Writer, settings: &Settings) {
    writer.number(settings.small_bytes).number(settings.overlap_rows as u64);
    writer.number(settings.ahead_percent as u64).number(settings.overlap_bytes).number(settings.keep_bytes);
    writer.bytes(settings.grid.to_string().as_bytes());
    // Equal weights are encoded as a count only.
    let listed: Vec<u64> = settings.weights.as_slice().iter().map(|weight| weight.to_bits()).collect();
    put_table(writer.number(settings.weights.ranks() as u64), &listed);
    put_table(writer, &settings.rates.iter().flat_map(|rates| rates.0.map(f64::to_bits)).collect::<Vec<u64>>());
}

/// Decodes settings from [`put_settings`].
pub fn get_settings(reader: &mut Reader<'_>) -> Result<Settings> {
    let (small_bytes, overlap_rows) = (reader.number()?, reader.number()? as i64);
    let (ahead_percent, overlap_bytes, keep_bytes) = (reader.number()? as i64, reader.number()?, reader.number()?);
    let grid = reader.text()?;
    let ranks = reader.number()? as usize;
    let weights: Vec<f64> = get_table::<u64>(reader)?.into_iter().map(f64::from_bits).collect();
    let weights = match weights.len() {
        0 => Weights::even(ranks),
        _ => Weights::given(weights).filter(|weights| weights.ranks() == ranks).ok_or_else(malformed)?,
    };
    let rates: Vec<f64> = get_table::<u64>(reader)?.into_iter().map(f64::from_bits).collect();
    let rates: Vec<Rates> = rates.as_chunks().0.iter().map(|rates| Rates(*rates)).collect();
    if !(rates.is_empty() || rates.len() == ranks) {
        return Err(malformed());
    }
    let grid = Grids::read(&grid, ranks)?;
    Ok(Settings { weights, rates, small_bytes, overlap_rows, ahead_percent, grid, overlap_bytes, keep_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::DType;

    #[test]
    fn commands_arrive_as_they_were_sent() {
        let (mut here, mut there) = (KnownBatches::default(), KnownBatches::default());
        let base = Base::new(7, DType::F64, 100);
        let span = Span::new(3, 9);
        let commands = [
            Command::Read(base, span),
            Command::Write(base, span),
            Command::ReadView(base, View::new(3, &[4, 2], &[-1, 7]).unwrap()),
            Command::WriteView(base, View::new(3, &[4], &[2]).unwrap()),
            Command::Know(base),
            Command::Renew(base),
            Command::Changed(base),
            Command::Adopt(base),
            Command::GatherToRank0(base),
            Command::ToRows(base),
            Command::Method("matmul".into(), 0x4001),
            Command::Open(true, "[stacks]".into()),
            Command::Traffic,
            Command::Message("threads 2".into()),
            Command::Close,
        ];
        let settings = Settings {
            weights: Weights::given(vec![1.0, 0.5]).unwrap(),
            rates: vec![Rates([1.0, 2.0, 3.0, 4.0, 5.0]), Rates([0.5; 5])],
            small_bytes: 4096,
            overlap_rows: 2,
            ahead_percent: 3,
            grid: Grids::Given(vec![1, 2]),
            overlap_bytes: 0,
            keep_bytes: 5,
        };
        let mut writer = Writer::default();
        put_settings(&mut writer, &settings);
        assert_eq!(get_settings(&mut Reader(&writer.0)).unwrap(), settings);
        for command in &commands {
            let bytes = here.put(command);
            assert_eq!(there.get(&bytes).unwrap(), *command);
            assert!(there.get(&bytes[..bytes.len() - 1]).is_err());
        }
    }
}
