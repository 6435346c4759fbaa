//! What rank 0 tells the others to do, as bytes: one block for a batch, or the number of one that they know and what
//! changed in it.

use crate::boxes::Span;
use crate::layout::Weights;
use crate::planner::Settings;
use crate::wire::{Reader, Writer};
use bh_bytecode::batch::{Attribute, BatchHeader, Constant, Extension, Instr, Origin, Rename, ViewRec};
use bh_bytecode::{Base, Batch, BatchRef, Block, for_each_table};
use bh_core::abi::status;
use bh_core::error::{Error, Result};

/// Batches that all ranks remember.
const KNOWN: usize = 256;

/// What all ranks do, at the word of rank 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Run a batch in this order of instructions.
    Execute(Box<Batch>, Vec<u32>),
    /// Bring elements to rank 0.
    Read(Base, Span),
    /// Take elements from rank 0.
    Write(Base, Span),
    /// Know an array.
    Know(Base),
    /// An array that is overwritten as a whole.
    Renew(Base),
    /// Elements of an array on rank 0 changed.
    Changed(Base),
    /// Rank 0 takes memory of the program as an array.
    Adopt(Base),
    /// An array is needed as a whole on rank 0.
    Home(Base),
    /// A number stands for an extension method.
    Method(String, u16),
    /// A context begins, with these settings.
    Open(Settings),
    /// Rank 0 wants to know what each rank has sent.
    Traffic,
    /// A command for the stacks below.
    Message(String),
    /// The context ends.
    Close,
}

/// Records that are plain numbers without gaps.
trait Plain: Copy {}
impl Plain for Base {}
impl Plain for ViewRec {}
impl Plain for i64 {}
impl Plain for Instr {}
impl Plain for Constant {}
impl Plain for Origin {}
impl Plain for Extension {}
impl Plain for u8 {}
impl Plain for Block {}
impl Plain for u32 {}
impl Plain for Rename {}
impl Plain for Attribute {}
impl Plain for u64 {}

fn put_table<T: Plain>(writer: &mut Writer, table: &[T]) {
    // SAFETY: the records are plain numbers without gaps.
    let bytes = unsafe { std::slice::from_raw_parts(table.as_ptr().cast::<u8>(), size_of_val(table)) };
    writer.bytes(bytes);
}

fn get_table<T: Plain>(reader: &mut Reader<'_>) -> Result<Vec<T>> {
    let bytes = reader.bytes()?;
    let count = bytes.len() / size_of::<T>();
    let mut table = Vec::<T>::with_capacity(count);
    // SAFETY: every pattern of bits is a record, and there is room for so many.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), table.as_mut_ptr().cast(), count * size_of::<T>());
        table.set_len(count);
    }
    Ok(table)
}

/// All of a batch, without the identities of its bases and its constants, which change from turn to turn of a loop.
fn put_shape(writer: &mut Writer, batch: &BatchRef<'_>, order: &[u32]) {
    let bases: Vec<Base> = batch.bases.iter().map(|base| Base { id: 0, ..*base }).collect();
    // What is known of the batch as a whole serves caches above, and none of the planner.
    let batch = BatchRef { bases: &bases, constants: &[], key: &[], slots: &[], ..*batch };
    macro_rules! put {
        ($($table:ident),*) => { $(put_table(writer, batch.$table);)* };
    }
    for_each_table!(put);
    put_table(writer, order);
}

fn get_shape(reader: &mut Reader<'_>) -> Result<(Batch, Vec<u32>)> {
    macro_rules! get {
        ($($table:ident),*) => { Batch { $($table: get_table(reader)?,)* header: BatchHeader::default() } };
    }
    let batch = for_each_table!(get);
    Ok((batch, get_table(reader)?))
}

/// What rank 0 and the others remember of batches.
pub struct Memory {
    known: Vec<Vec<u8>>,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { known: vec![Vec::new(); KNOWN] }
    }
}

impl Memory {
    /// The bytes of the command to run a batch.
    pub fn put_execute(&mut self, batch: &BatchRef<'_>, order: &[u32]) -> Vec<u8> {
        let mut shape = Writer::default();
        put_shape(&mut shape, batch, order);
        let slot = bh_bytecode::hash::hash_bytes(&shape.0) as usize % KNOWN;
        let mut writer = Writer::default();
        let known = self.known[slot] == shape.0;
        writer.number(0).number(u64::from(known)).number(slot as u64);
        let ids: Vec<i64> = batch.bases.iter().map(|base| base.id as i64).collect();
        put_table(&mut writer, &ids);
        put_table(&mut writer, batch.constants);
        if !known {
            writer.bytes(&shape.0);
            self.known[slot] = shape.0;
        }
        writer.0
    }

    fn get_execute(&mut self, reader: &mut Reader<'_>) -> Result<Command> {
        let (known, slot) = (reader.number()?, reader.number()? as usize);
        let ids: Vec<i64> = get_table(reader)?;
        let constants = get_table(reader)?;
        let place = self.known.get_mut(slot).ok_or_else(strange)?;
        if known == 0 {
            *place = reader.bytes()?.to_vec();
        }
        let (mut batch, order) = get_shape(&mut Reader(place))?;
        batch.constants = constants;
        for (base, id) in batch.bases.iter_mut().zip(ids) {
            base.id = id as u64;
        }
        Ok(Command::Execute(Box::new(batch), order))
    }

    /// What the bytes of a command, behind its number, stand for.
    pub fn get(&mut self, bytes: &[u8]) -> Result<Command> {
        let mut reader = Reader(bytes);
        let kind = reader.number()?;
        let base = |reader: &mut Reader<'_>| get_table::<Base>(reader)?.pop().ok_or_else(strange);
        let span =
            |reader: &mut Reader<'_>| Ok::<Span, Error>(Span::new(reader.number()? as i64, reader.number()? as i64));
        Ok(match kind {
            0 => self.get_execute(&mut reader)?,
            1 => Command::Read(base(&mut reader)?, span(&mut reader)?),
            2 => Command::Write(base(&mut reader)?, span(&mut reader)?),
            3 => Command::Know(base(&mut reader)?),
            4 => Command::Renew(base(&mut reader)?),
            5 => Command::Changed(base(&mut reader)?),
            6 => Command::Adopt(base(&mut reader)?),
            7 => Command::Home(base(&mut reader)?),
            8 => Command::Method(reader.text()?, reader.number()? as u16),
            9 => Command::Close,
            10 => Command::Open(get_settings(&mut reader)?),
            11 => Command::Traffic,
            12 => Command::Message(reader.text()?),
            _ => return Err(strange()),
        })
    }

    /// The bytes of a command.
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
            Command::Home(base) => with(7, base, None),
            Command::Execute(batch, order) => return self.put_execute(&Batch::as_ref(batch), order),
            Command::Method(name, opcode) => {
                writer.number(8).bytes(name.as_bytes()).number(u64::from(*opcode));
            }
            Command::Close => {
                writer.number(9);
            }
            Command::Open(settings) => put_settings(writer.number(10), settings),
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

fn put_settings(writer: &mut Writer, settings: &Settings) {
    writer.number(settings.small_bytes).number(settings.overlap_rows as u64);
    let weights: Vec<u64> = settings.weights.as_slice().iter().map(|weight| weight.to_bits()).collect();
    put_table(writer, &weights);
}

fn get_settings(reader: &mut Reader<'_>) -> Result<Settings> {
    let (small_bytes, overlap_rows) = (reader.number()?, reader.number()? as i64);
    let weights = get_table::<u64>(reader)?.into_iter().map(f64::from_bits).collect();
    let weights = Weights::given(weights).ok_or_else(strange)?;
    Ok(Settings { weights, small_bytes, overlap_rows })
}

fn strange() -> Error {
    Error::new(status::EXECUTION, "a control message is none of this version: do all ranks run the same bh?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::DType;
    use bh_bytecode::random::{Options, program};

    #[test]
    fn commands_arrive_as_they_were_sent() {
        let (mut here, mut there) = (Memory::default(), Memory::default());
        let base = Base::new(7, DType::F64, 100);
        let span = Span::new(3, 9);
        let mut commands = vec![
            Command::Read(base, span),
            Command::Write(base, span),
            Command::Know(base),
            Command::Renew(base),
            Command::Changed(base),
            Command::Adopt(base),
            Command::Home(base),
            Command::Method("matmul".into(), 0x4001),
            Command::Open(Settings {
                weights: Weights::given(vec![1.0, 0.5]).unwrap(),
                small_bytes: 4096,
                overlap_rows: 2,
            }),
            Command::Traffic,
            Command::Message("threads 2".into()),
            Command::Close,
        ];
        for seed in 0..50 {
            let mut batch = program(seed % 40, &Options::default()).batch;
            batch.forget_structure();
            let order = (0..batch.instrs.len() as u32).collect();
            commands.push(Command::Execute(Box::new(batch), order));
        }
        for command in &commands {
            let bytes = here.put(command);
            assert_eq!(there.get(&bytes).unwrap(), *command);
            assert!(there.get(&bytes[..bytes.len() - 1]).is_err());
        }
    }

    #[test]
    fn a_batch_that_comes_again_is_its_number_and_what_changed() {
        let mut here = Memory::default();
        let mut batch = program(4, &Options::default()).batch;
        let order: Vec<u32> = (0..batch.instrs.len() as u32).collect();
        here.put_execute(&batch.as_ref(), &order);
        batch.bases.iter_mut().for_each(|base| base.id += 100);
        let bytes = here.put_execute(&batch.as_ref(), &order).len();
        assert!(bytes <= 64 + 8 * batch.bases.len() + size_of_val(&batch.constants[..]), "{bytes} bytes");
    }
}
