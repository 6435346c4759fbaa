//! [`SharedCalls`]: the calls that may come from any thread while other calls into the component run.

use super::{defaults, slot_answer};
use crate::abi::{
    Adoption, Evaluation, Export, ExportRequest, HostMemory, ImmediateOperation, Residency, ScalarOperation,
};
use crate::error::Result;
use crate::for_each_slot;
use bh_bytecode::{Base, View};

macro_rules! shared_trait {
    (
        special { $($special:tt)* }
        plain {
            $($(#[doc = $doc:literal])*
            $forwarding:ident $calls:ident fn $name:ident($($argument:ident: $kind:ty),*) $(-> $answer:ty)? = $default:ident;)*
        }
    ) => {
        /// Calls about data, and calls that compute immediately. A component that announces CONCURRENT_DATA, EVALUATES
        /// or IMMEDIATE answers them with a separate object that has its own locks.
        #[allow(unused_variables)]
        pub trait SharedCalls: Send + Sync {
            $(shared_method! {
                $calls $(#[doc = $doc])*
                fn $name(&self, $($argument: $kind),*) -> Result<slot_answer!($($answer)?)> {
                    defaults::$default("shared")
                }
            })*
        }
    };
}
/// Only shared calls are methods of the trait.
macro_rules! shared_method {
    (serial $($method:tt)*) => {};
    (shared $($method:tt)*) => { $($method)* };
}
for_each_slot!(shared_trait);
