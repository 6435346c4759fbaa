//! The safe side of the ABI: the trait that a component implements ([`Component`]) and the values that it gets
//! ([`Host`], [`Child`], [`Registry`]).

mod attachment;
mod child;
mod host;
mod registry;
mod report;
mod service;
mod shared;

pub use attachment::Attachment;
pub use child::{Child, SharedChild};
pub(crate) use host::DEVICE_NUMBER;
pub use host::{Counter, Host};
pub use registry::{Fresh, Loan, Registry};
pub use report::{Collected, Failure, Report};
pub use service::{RegistryService, registry_table};
pub use shared::SharedCalls;

use crate::abi::{
    Adoption, Capabilities, Evaluation, Export, ExportRequest, HostMemory, ImmediateOperation, Prediction, Residency,
    ScalarOperation, Served, status,
};
use crate::error::{Error, Result};
use crate::for_each_slot;
use bh_bytecode::{Base, BatchRef, Opcode, View};

/// Identifies the work of an `execute` call; [`Ticket::DONE`] needs no waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u64);

impl Ticket {
    /// The work is done.
    pub const DONE: Ticket = Ticket(0);
}

macro_rules! component_trait {
    (
        special { $($special:tt)* }
        plain {
            $($(#[doc = $doc:literal])*
            $forwarding:ident $calls:ident fn $name:ident($($argument:ident: $kind:ty),*) $(-> $answer:ty)? = $default:ident;)*
        }
    ) => {
        /// A component. Every method except `create` and `child` has a default that forwards to the child. Methods of
        /// one instance are never called concurrently or re-entered. Export the type with [`crate::export_component!`].
        ///
        /// # Safety
        /// The values that the host passes point to memory that the host owns, without a lifetime that the compiler
        /// knows. After the instance has been dropped, an implementation must not use, on any thread, the [`Host`] and
        /// the children from `create`, the [`Registry`] from `bind`, or values that came from these: a [`Counter`], a
        /// [`SharedChild`], a [`Loan`], a [`Fresh`]. It must not use the [`Report`] of an `execute` after that call.
        pub unsafe trait Component: Sized + Send + 'static {
            /// Name, as in config sections: `filter`.
            const NAME: &'static str;
            /// A value of [`crate::abi::kind`].
            const KIND: u32;
            /// The config keys it knows, a table of [`crate::keys!`].
            const KEYS: &'static [crate::config::Row];

            /// Whether it implements the calls of [`SharedCalls`]. If not, the host skips it for these calls.
            const SHARED: bool = Self::KIND == crate::abi::kind::DATA_MANAGER;

            /// Creates an instance above these children.
            fn create(host: Host, children: Vec<Child>) -> Result<Self>;

            /// The child that default methods forward to; `None` at the bottom of the stack.
            fn child(&mut self) -> Option<&mut Child>;

            /// The object that answers calls that overlap others, if the component announces CONCURRENT_DATA, EVALUATES
            /// or IMMEDIATE. Requested once, after `create`. If there is none, the methods of this trait answer, one
            /// call at a time.
            fn shared(&self) -> Option<std::sync::Arc<dyn SharedCalls>> {
                None
            }

            /// Its abilities; by default those of the child.
            fn capabilities(&mut self) -> Capabilities {
                self.child().map_or_else(Capabilities::default, |child| child.capabilities())
            }

            /// Whether it can run this block. The answer holds for the next `execute`.
            fn supports(&mut self, _batch: &BatchRef<'_>, _block: u32) -> bool {
                true
            }

            /// Runs these blocks in this order, or the batch in stored order if it has no partition. On failure: stop
            /// and name the block ([`Error::in_block`]); earlier blocks are done. If an instruction fails and
            /// everything else goes on, report it to `report` instead.
            fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], report: &mut Report) -> Result<Ticket> {
                let name = Self::NAME;
                match self.child() {
                    Some(child) => child.execute(batch, blocks, report),
                    None => Err(Error::new(status::UNSUPPORTED, format!("{name} cannot execute and has no child"))),
                }
            }

            /// Predicts the cost of running these blocks.
            fn predict(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Prediction> {
                self.child().map_or_else(|| Ok(Prediction::default()), |child| child.predict(batch, blocks))
            }

            /// Answers a text question or command; an empty answer means that no component knows it.
            fn message(&mut self, text: &str) -> Result<String> {
                self.child().map_or(Ok(String::new()), |child| child.message(text))
            }

            $($(#[doc = $doc])*
            fn $name(&mut self, $($argument: $kind),*) -> Result<slot_answer!($($answer)?)> {
                match self.child() {
                    Some(child) => child.$name($($argument),*),
                    None => defaults::$default(Self::NAME),
                }
            })*
        }
    };
}
macro_rules! slot_answer {
    () => {
        ()
    };
    ($answer:ty) => {
        $answer
    };
}
pub(crate) use slot_answer;
for_each_slot!(component_trait);

/// The answers to calls that no component implements.
pub(crate) mod defaults {
    use super::{Error, Result, status};
    use crate::abi::WireAnswer;

    /// Nothing to do or to return.
    pub(crate) fn nothing<T: WireAnswer>(_component: &str) -> Result<T> {
        Ok(T::from_raw(T::blank()))
    }

    /// The caller waits instead.
    pub(crate) fn cannot_poll<T>(component: &str) -> Result<T> {
        Err(Error::new(status::UNSUPPORTED, format!("component '{component}' cannot tell whether its work is done")))
    }

    /// No component has arrays.
    pub(crate) fn no_arrays<T>(component: &str) -> Result<T> {
        Err(Error::new(status::UNSUPPORTED, format!("component '{component}' holds no arrays and has no child")))
    }
}

/// Records that an engine begins with this block, so that an error or a panic is reported at its place and only this
/// block is lost.
pub fn enter_block(block: u32) {
    crate::guard::BLOCK.set(Some(block));
}
