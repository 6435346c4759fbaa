//! Transports of messages between ranks, and counts of what they send.

pub mod buffers;
pub mod inprocess;
pub mod multiplex;
pub mod remote;
pub mod tree;

use bh_core::error::Result;
use std::ops::Range;

/// Sends messages between ranks. Messages from one rank to another arrive in order.
pub trait Transport: Send {
    /// The number of ranks.
    fn ranks(&self) -> usize;

    /// The ranks of this process.
    fn hosted(&self) -> Range<usize>;

    /// The first rank of each process. By default each process has one rank.
    fn processes(&self) -> Vec<usize> {
        (0..self.ranks()).collect()
    }

    /// Sends a message from a hosted rank, without waiting for the receiver.
    fn send(&mut self, from: usize, to: usize, bytes: Vec<u8>) -> Result<()>;

    /// Announces that the next message from a rank to a hosted one has this many bytes, so that a receive can be
    /// posted.
    fn expect(&mut self, _at: usize, _from: usize, _bytes: usize) -> Result<()> {
        Ok(())
    }

    /// Waits for the next message from a rank to a hosted one.
    fn receive(&mut self, at: usize, from: usize) -> Result<Vec<u8>>;

    /// Ends all processes with an error message.
    fn abort(&mut self, text: &str);
}

/// The kind of a message's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Elements of arrays.
    Payload,
    /// Batches, commands, errors, counts.
    Control,
}

/// Counts of sent messages and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages of elements.
    pub messages: u64,
    /// Bytes of elements.
    pub bytes: u64,
    /// Other messages.
    pub control_messages: u64,
    /// Bytes of these.
    pub control_bytes: u64,
}

impl Traffic {
    fn count(&mut self, class: Class, bytes: usize) {
        let (messages, sum) = match class {
            Class::Payload => (&mut self.messages, &mut self.bytes),
            Class::Control => (&mut self.control_messages, &mut self.control_bytes),
        };
        *messages += 1;
        *sum += bytes as u64;
    }

    /// The four numbers, in the order of the fields.
    pub fn numbers(&self) -> [u64; 4] {
        [self.messages, self.bytes, self.control_messages, self.control_bytes]
    }

    /// Creates counts from the four numbers.
    pub fn of_numbers([messages, bytes, control_messages, control_bytes]: [u64; 4]) -> Traffic {
        Traffic { messages, bytes, control_messages, control_bytes }
    }

    /// The difference to earlier counts.
    pub fn since(&self, before: &Traffic) -> Traffic {
        let (now, before) = (self.numbers(), before.numbers());
        Traffic::of_numbers(std::array::from_fn(|place| now[place] - before[place]))
    }
}

/// Traffic by rank as JSON: a list with an object for each rank.
pub fn to_json(traffic: impl Iterator<Item = (usize, Traffic)>) -> String {
    let line = |(rank, sent): (usize, Traffic)| {
        format!(
            "{{\"rank\": {rank}, \"messages\": {}, \"bytes\": {}, \"control_messages\": {}, \"control_bytes\": {}}}",
            sent.messages, sent.bytes, sent.control_messages, sent.control_bytes
        )
    };
    let lines: Vec<String> = traffic.map(line).collect();
    format!("[{}]", lines.join(",\n "))
}

/// A transport that counts messages.
pub struct Port {
    wire: Box<dyn Transport>,
    hosted: Range<usize>,
    /// The first rank of each process.
    processes: Vec<usize>,
    sent: Vec<Traffic>,
}

impl Port {
    /// A port with zero counts.
    pub fn new(wire: Box<dyn Transport>) -> Port {
        let (hosted, processes) = (wire.hosted(), wire.processes());
        Port { wire, sent: vec![Traffic::default(); hosted.len()], hosted, processes }
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.wire.ranks()
    }

    /// The ranks of this process.
    pub fn hosted(&self) -> Range<usize> {
        self.hosted.clone()
    }

    /// The first rank of each process.
    pub fn processes(&self) -> &[usize] {
        &self.processes
    }

    /// The number of this process.
    pub fn process(&self) -> usize {
        self.processes.partition_point(|&first| first <= self.hosted.start) - 1
    }

    /// Does this process host a rank?
    pub fn hosts(&self, rank: usize) -> bool {
        self.hosted.contains(&rank)
    }

    /// Are all ranks in this process?
    pub fn is_alone(&self) -> bool {
        self.hosted.len() == self.ranks()
    }

    /// Sends a message from a hosted rank and counts it.
    pub fn send(&mut self, class: Class, from: usize, to: usize, bytes: Vec<u8>) -> Result<()> {
        self.sent[from - self.hosted.start].count(class, bytes.len());
        self.wire.send(from, to, bytes)
    }

    /// Announces the next message from a rank to a hosted one; no other may be received before it.
    pub fn expect(&mut self, at: usize, from: usize, bytes: usize) -> Result<()> {
        self.wire.expect(at, from, bytes)
    }

    /// Waits for the next message from a rank to a hosted one.
    pub fn receive(&mut self, at: usize, from: usize) -> Result<Vec<u8>> {
        self.wire.receive(at, from)
    }

    /// Ends all processes.
    pub fn abort(&mut self, text: &str) {
        self.wire.abort(text);
    }

    /// The traffic of each hosted rank.
    pub fn sent(&self) -> &[Traffic] {
        &self.sent
    }

    /// Counts elements that moved without a message as if they were one, unless there are none.
    pub fn note_message(&mut self, from: usize, bytes: usize) {
        if bytes > 0 {
            self.sent[from - self.hosted.start].count(Class::Payload, bytes);
        }
    }

    /// Adds traffic that another port sent for this process's first rank.
    pub fn note(&mut self, sent: &Traffic) {
        let (now, more) = (self.sent[0].numbers(), sent.numbers());
        self.sent[0] = Traffic::of_numbers(std::array::from_fn(|place| now[place] + more[place]));
    }
}
