//! The floating-point control state: default rounding, denormals kept, exceptions masked, whatever the caller has set.

/// Holds the default state until it is dropped, then restores the caller's, with the sticky exception flags of both.
pub(crate) struct DefaultFloatState {
    /// The caller's state, if that is another one, as writing it takes longer than little operations do.
    saved: Option<u64>,
}

impl DefaultFloatState {
    #[inline]
    pub(crate) fn enter() -> DefaultFloatState {
        let saved = Some(read()).filter(|state| state & !FLAGS != DEFAULT & !FLAGS);
        if saved.is_some() {
            write(DEFAULT);
        }
        DefaultFloatState { saved }
    }
}

impl Drop for DefaultFloatState {
    #[inline]
    fn drop(&mut self) {
        if let Some(saved) = self.saved {
            write(saved | read() & FLAGS);
        }
    }
}

#[cfg(target_arch = "x86_64")]
const DEFAULT: u64 = 0x1F80;

#[cfg(target_arch = "x86_64")]
const FLAGS: u64 = 0x3F;

#[cfg(target_arch = "x86_64")]
fn read() -> u64 {
    let mut value = 0u32;
    // SAFETY: stores MXCSR into a local.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags)) };
    u64::from(value)
}

#[cfg(target_arch = "x86_64")]
fn write(value: u64) {
    let value = value as u32;
    // SAFETY: loads a value read before, or the processor's reset value. The sticky flags in it change, so that the option
    // `preserves_flags`, which stands for them too, is not given.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack)) };
}

#[cfg(target_arch = "aarch64")]
const DEFAULT: u64 = 0;

// They are in a register of their own, which is left alone.
#[cfg(not(target_arch = "x86_64"))]
const FLAGS: u64 = 0;

#[cfg(target_arch = "aarch64")]
fn read() -> u64 {
    let value: u64;
    // SAFETY: reads FPCR.
    unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

#[cfg(target_arch = "aarch64")]
fn write(value: u64) {
    // SAFETY: writes a value read before, or the default.
    unsafe { std::arch::asm!("msr fpcr, {}", in(reg) value, options(nomem, nostack, preserves_flags)) };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const DEFAULT: u64 = 0;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn read() -> u64 {
    0
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn write(_value: u64) {}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn the_callers_state_comes_back() {
        let before = read();
        let flushing = before | 0x8040;
        write(flushing);
        {
            let _state = DefaultFloatState::enter();
            assert_eq!(read(), DEFAULT);
            let tiny = std::hint::black_box(f64::MIN_POSITIVE);
            assert_ne!(tiny / 2.0, 0.0);
            assert_eq!(std::hint::black_box(1.0) / std::hint::black_box(0.0), f64::INFINITY);
        }
        assert_eq!(read() & !FLAGS, flushing & !FLAGS);
        assert_ne!(read() & 4, 0, "a division by zero is noted");
        write(before);
    }
}
