//! How the types of the safe interface cross the component boundary.

use super::{
    Adoption, Evaluation, Export, ExportRequest, HostMemory, ImmediateOperation, RegistryTable, Residency,
    ScalarOperation, Served, ViewSpec, status,
};
use crate::component::{Registry, Ticket};
use crate::error::{Error, Result};
use bh_bytecode::{Base, Opcode, View};
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

/// A type of arguments.
pub trait Wire {
    /// The C type.
    type Raw: Copy;
    /// The value that the sender keeps alive while `Raw` points to it.
    type Kept;
    /// The C declaration of the parameter, with `%` for its name.
    const C: &'static str;
    /// Prepares a value for a call.
    fn keep(self) -> Result<Self::Kept>;
    /// The C value, which lives as long as `kept`.
    fn raw(kept: &Self::Kept) -> Self::Raw;
}

/// The receiving side of [`Wire`].
pub trait Received<'a>: Wire + Sized {
    /// The receiver's form of the C value.
    type Owned: 'a;
    /// Reads a C value.
    ///
    /// # Safety
    /// A pointer must be null, or point to a value that lives, unchanged, through `'a`: a text ends with a NUL, and a
    /// view has `rank` extents and strides. The memory that a value describes must satisfy the contract of its
    /// constructor, such as [`HostMemory::new`]. The table of a registry must be null, or satisfy [`Registry::new`].
    unsafe fn own(raw: Self::Raw) -> Result<Self::Owned>;
    /// The value of the safe interface.
    fn lend(owned: &'a Self::Owned) -> Self;
}

/// A type of answers.
pub trait WireAnswer: Sized {
    /// The C type.
    type Raw: Copy;
    /// The C declaration of the out parameter, with `%` for its name.
    const C: &'static str;
    /// The value before a component has answered.
    fn blank() -> Self::Raw;
    /// The C value.
    fn to_raw(self) -> Self::Raw;
    /// The value of the safe interface.
    fn from_raw(raw: Self::Raw) -> Self;
}

fn null(what: &str) -> Error {
    Error::new(status::ARGUMENT, format!("the pointer to the {what} is null"))
}

macro_rules! references {
    ($($type:ty: $c:literal;)*) => {$(
        impl<'r> Wire for &'r $type {
            type Raw = *const $type;
            type Kept = &'r $type;
            const C: &'static str = concat!("const ", $c, " *%");
            #[inline]
            fn keep(self) -> Result<&'r $type> {
                Ok(self)
            }
            #[inline]
            fn raw(kept: &&'r $type) -> *const $type {
                *kept
            }
        }

        impl<'a> Received<'a> for &'a $type {
            type Owned = &'a $type;
            #[inline]
            unsafe fn own(raw: *const $type) -> Result<&'a $type> {
                // SAFETY: null, or a value that lives through `'a`, as [`Received::own`] asks.
                unsafe { raw.as_ref() }.ok_or_else(|| null($c))
            }
            #[inline]
            fn lend(owned: &'a &'a $type) -> &'a $type {
                owned
            }
        }
    )*};
}
references! {
    Base: "bh_base";
    HostMemory: "bh_host_memory";
    Adoption: "bh_adoption";
    ExportRequest: "bh_export_request";
    ScalarOperation: "bh_scalar_operation";
    ImmediateOperation: "bh_immediate_operation";
}

macro_rules! values {
    ($($type:ty as $raw:ty: $c:literal, |$value:ident| $to:expr, |$back:ident| $from:expr;)*) => {$(
        impl Wire for $type {
            type Raw = $raw;
            type Kept = $raw;
            const C: &'static str = $c;
            #[inline]
            fn keep(self) -> Result<$raw> {
                let $value = self;
                Ok($to)
            }
            #[inline]
            fn raw(kept: &$raw) -> $raw {
                *kept
            }
        }

        impl<'a> Received<'a> for $type {
            type Owned = $type;
            #[inline]
            unsafe fn own($back: $raw) -> Result<$type> {
                Ok($from)
            }
            #[inline]
            fn lend(owned: &'a $type) -> $type {
                *owned
            }
        }
    )*};
}
values! {
    u32 as u32: "uint32_t %", |value| value, |raw| raw;
    u64 as u64: "uint64_t %", |value| value, |raw| raw;
    bool as i32: "int32_t %", |value| i32::from(value), |raw| raw != 0;
    Opcode as u16: "bh_opcode %", |value| value.0, |raw| Opcode(raw);
    Ticket as u64: "uint64_t %", |value| value.0, |raw| Ticket(raw);
    Registry as *const RegistryTable: "const bh_registry_table *%", |value| value.as_ptr(), |raw| match raw.is_null() {
        true => return Err(null("registry")),
        // SAFETY: not null, and so a table that is as `Registry::new` asks, as [`Received::own`] says.
        false => unsafe { Registry::new(raw) },
    };
}

/// The description of a view that lives on the sender's stack.
#[inline]
pub(crate) fn view_spec(view: &View) -> ViewSpec {
    ViewSpec {
        start: view.start(),
        shape: view.shape().as_ptr(),
        stride: view.stride().as_ptr(),
        rank: view.rank() as u32,
    }
}

/// Reads a view's description.
///
/// # Safety
/// If `rank` is not 0, `shape` and `stride` of the description must each be null or point to `rank` numbers that live
/// through the call.
pub(crate) unsafe fn read_view(spec: &ViewSpec) -> Result<View> {
    let rank = spec.rank as usize;
    if rank > 0 && (spec.shape.is_null() || spec.stride.is_null()) {
        return Err(null("view's extents"));
    }
    if rank > bh_bytecode::MAX_RANK {
        return Err(Error::new(status::ARGUMENT, format!("the view has {rank} dimensions")));
    }
    // SAFETY: `rank` is not 0, so neither is null, and both are `rank` numbers, as `# Safety` asks; the view copies
    // them.
    let list = |data| if rank == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(data, rank) } };
    View::new(spec.start, list(spec.shape), list(spec.stride)).map_err(|why| Error::new(status::ARGUMENT, why.0))
}

impl ViewSpec {
    /// The described view.
    ///
    /// # Safety
    /// If `rank` is not 0, `shape` and `stride` of the description must each be null or point to `rank` numbers that
    /// live through the call.
    pub unsafe fn view(&self) -> Result<View> {
        // SAFETY: `read_view` asks for what `# Safety` asks.
        unsafe { read_view(self) }
    }
}

impl Wire for &View {
    type Raw = *const ViewSpec;
    type Kept = ViewSpec;
    const C: &'static str = "const bh_view_spec *%";
    #[inline]
    fn keep(self) -> Result<ViewSpec> {
        Ok(view_spec(self))
    }
    #[inline]
    fn raw(kept: &ViewSpec) -> *const ViewSpec {
        kept
    }
}

impl<'a> Received<'a> for &'a View {
    type Owned = View;
    unsafe fn own(raw: *const ViewSpec) -> Result<View> {
        // SAFETY: null, or a description that lives through the call and has `rank` extents and strides, as
        // [`Received::own`] asks.
        unsafe { raw.as_ref().ok_or_else(|| null("view")).and_then(|spec| read_view(spec)) }
    }
    fn lend(owned: &'a View) -> &'a View {
        owned
    }
}

impl Wire for Option<&View> {
    type Raw = *const ViewSpec;
    type Kept = Option<ViewSpec>;
    const C: &'static str = "const bh_view_spec *%";
    #[inline]
    fn keep(self) -> Result<Option<ViewSpec>> {
        Ok(self.map(view_spec))
    }
    #[inline]
    fn raw(kept: &Option<ViewSpec>) -> *const ViewSpec {
        kept.as_ref().map_or(ptr::null(), ptr::from_ref)
    }
}

impl<'a> Received<'a> for Option<&'a View> {
    type Owned = Option<View>;
    unsafe fn own(raw: *const ViewSpec) -> Result<Option<View>> {
        // SAFETY: null, or a description that lives through the call and has `rank` extents and strides, as
        // [`Received::own`] asks.
        unsafe { raw.as_ref().map(|spec| read_view(spec)).transpose() }
    }
    fn lend(owned: &'a Option<View>) -> Option<&'a View> {
        owned.as_ref()
    }
}

impl Wire for &str {
    type Raw = *const c_char;
    type Kept = CString;
    const C: &'static str = "const char *%";
    fn keep(self) -> Result<CString> {
        CString::new(self).map_err(|_| Error::new(status::ARGUMENT, format!("the name {self:?} contains a NUL")))
    }
    fn raw(kept: &CString) -> *const c_char {
        kept.as_ptr()
    }
}

impl<'a> Received<'a> for &'a str {
    type Owned = String;
    unsafe fn own(raw: *const c_char) -> Result<String> {
        if raw.is_null() {
            return Err(null("name"));
        }
        // SAFETY: not null, and so a text that ends with a NUL, as [`Received::own`] asks; it is copied.
        Ok(unsafe { CStr::from_ptr(raw) }.to_string_lossy().into_owned())
    }
    fn lend(owned: &'a String) -> &'a str {
        owned
    }
}

macro_rules! answers {
    ($($type:ty as $raw:ty: $c:literal, $blank:expr, |$value:ident| $to:expr, |$back:ident| $from:expr;)*) => {$(
        impl WireAnswer for $type {
            type Raw = $raw;
            const C: &'static str = $c;
            #[inline]
            fn blank() -> $raw {
                $blank
            }
            #[inline]
            fn to_raw(self) -> $raw {
                let $value = self;
                $to
            }
            #[inline]
            fn from_raw($back: $raw) -> $type {
                $from
            }
        }
    )*};
}
answers! {
    () as (): "void *%", (), |value| value, |raw| raw;
    bool as i32: "int32_t *%", 0, |value| i32::from(value), |raw| raw != 0;
    *mut u8 as *mut c_void: "void **%", ptr::null_mut(), |value| value.cast(), |raw| raw.cast();
    Export as Export: "bh_export *%", Export { data: ptr::null_mut(), bytes: 0, token: 0 }, |value| value, |raw| raw;
    Residency as Residency: "bh_residency *%", Residency::default(), |value| value, |raw| raw;
    Evaluation as Evaluation: "bh_evaluation *%", Evaluation::default(), |value| value, |raw| raw;
    Served as Served: "bh_served *%", Served::default(), |value| value, |raw| raw;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_that_is_null_is_refused() {
        // SAFETY: null is allowed.
        let Err(error) = (unsafe { Registry::own(ptr::null()) }) else { panic!("it is taken") };
        assert_eq!((error.status, error.text.as_str()), (status::ARGUMENT, "the pointer to the registry is null"));
    }
}
