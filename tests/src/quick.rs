//! Kernels of devices that are built in little time.

/// Has PoCL build the kernels from here on without optimisation, which takes a third of the time; or with it again. With `--all`, and in
/// `cargo xtask opencl-suites`, both of which set `BH_TEST_OPENCL`, it always optimises.
///
/// # Safety
/// No other thread may read the environment meanwhile but through `std::env`.
pub unsafe fn build_quickly(quickly: bool) {
    const FLAGS: &str = "POCL_EXTRA_BUILD_FLAGS";
    let optimises = std::env::var_os("BH_TEST_OPENCL").is_some();
    // SAFETY: as `# Safety` asks.
    unsafe {
        match quickly && !optimises {
            true => std::env::set_var(FLAGS, "-cl-opt-disable"),
            false => std::env::remove_var(FLAGS),
        }
    }
}
