//! The native half of the Python package `bh`: arrays and operations recorded for a stack of components.
//!
//! Code that must be fast or must touch the recorder is here: the array type, arithmetic, basic indexing, folds, and data in
//! and out. Everything that composes them is Python (`python/bh`).

mod advanced;
mod arguments;
mod arrange;
mod array;
mod array_api;
mod array_functions;
mod assemble;
mod attributes;
mod blocks;
mod buffer;
mod by_class;
mod by_numpy;
mod call;
mod compose;
mod composed;
mod computed_selection;
mod context;
mod create;
mod derive;
mod dlpack;
mod dump;
mod element;
mod error;
mod few;
mod fold;
mod foreign;
mod fourier;
mod from_lists;
mod function;
mod gradient;
mod index;
mod interpolation;
mod interrupt;
mod jit;
mod join;
mod layout;
mod location;
mod members;
mod method;
mod number;
mod numpy_api;
mod numpy_types;
mod operand;
mod order;
mod part;
mod product;
mod protocol;
mod rank_calls;
mod record;
mod repeat;
mod report;
mod scalar;
mod selection;
mod sequence;
mod shape;
mod shared_view;
mod shortcut;
mod sites;
mod statistics;
mod strided;
mod taught;
mod text;
mod transfer;
mod ufunc;
mod warning;
mod without_nan;

use pyo3::prelude::*;

/// The native module `bh._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    bh_recorder::set_program_wait(interrupt::wait);
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<error::BhError>())?;
    module.add("BoundsError", error::index_error(module.py())?)?;
    module.add_class::<array::Array>()?;
    module.add_function(wrap_pyfunction!(array::set_class_of_arrays, module)?)?;
    ufunc::register(module)?;
    advanced::register(module)?;
    blocks::register(module)?;
    by_class::register(module)?;
    by_numpy::register(module)?;
    context::register(module)?;
    number::register(module)?;
    fourier::register(module)?;
    function::register(module)?;
    index::register(module)?;
    record::register(module)?;
    report::register(module)?;
    jit::register(module)?;
    join::register(module)?;
    derive::register(module)?;
    members::register(module)?;
    part::register(module)?;
    product::register(module)?;
    protocol::register(module)?;
    selection::register(module)?;
    shortcut::register(module)?;
    sites::register(module)?;
    taught::register(module)?;
    array_api::register(module)?;
    scalar::register(module)?;
    arrange::register(module)?;
    compose::register(module)?;
    transfer::register(module)?;
    buffer::register(module)?;
    dlpack::register(module)?;
    warning::register(module)?;
    layout::register(module)?;
    location::register(module)
}
